//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
	"github.com/jenga-nlp/jenga/nn"
)

var residentLayouts = []string{"bert", "distilbert", "roberta", "modernbert"}

// residentPair returns the same network on the processor and on a device.
func residentPair(t *testing.T, c config, freeze string) (*encoder, nn.Params, *resident) {
	t.Helper()
	host, params := network(t, c, freeze)
	same, _ := network(t, c, freeze)
	r, err := toDevice(same, cudatest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return host, params, r
}

// tinyResident is tiny with widths for the device's fast kernels, or of odd sizes, and dropout.
func tinyResident(layout string, odd bool, rate float64) config {
	c := tiny(layout)
	if !odd {
		c.Width, c.Heads, c.FeedForward = 32, 2, 48
	}
	c.setDropout(rate)
	return c
}

// gradientsOf returns the gradients of a resident encoder by the names of parameters.
func gradientsOf(t *testing.T, r *resident) map[string][]float32 {
	t.Helper()
	all := make([]float32, r.learning())
	r.gpu.Download(cuda.Bytes(all), r.store.gradients)
	if err := r.gpu.Synchronize(); err != nil {
		t.Fatal(err)
	}
	named := map[string][]float32{}
	for _, m := range r.matrices {
		if m.learns() {
			m.split(all[m.at:], func(w *nn.Param) []float32 {
				named[w.Name] = make([]float32, w.Size())
				return named[w.Name]
			})
		}
	}
	return named
}

// apart returns the largest difference of values, and the largest value.
func apart(a, b []float32) (difference, largest float64) {
	if len(a) != len(b) {
		return math.Inf(1), 0
	}
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.Inf(1), 0
		}
		difference, largest = max(difference, d), max(largest, math.Abs(float64(b[i])))
	}
	return difference, largest
}

func TestADeviceComputesTheStatesAndGradientsOfTheProcessor(t *testing.T) {
	for _, layout := range residentLayouts {
		for _, odd := range []bool{false, true} {
			for _, mode := range []encoders.Mode{
				{Layers: nn.LastLayer}, {Layers: nn.AllLayers}, {Layers: nn.LastLayer, TF32: true},
				{Layers: nn.LastLayer, Precision: nn.BFloat16},
			} {
				for _, rate := range []float64{0, 0.3} {
					name := fmt.Sprintf("%s/odd=%v/%v/tf32=%v/layers=%v/dropout=%v", layout, odd, mode.Precision,
						mode.TF32, mode.Layers, rate)
					t.Run(name, func(t *testing.T) { compareWithProcessor(t, tinyResident(layout, odd, rate), mode) })
				}
			}
		}
	}
}

func compareWithProcessor(t *testing.T, c config, mode encoders.Mode) {
	host, params, r := residentPair(t, c, "none")
	store := r.newStore(0.01, 0)
	store.Zero()
	tokens := someBatch()
	onHost := mode
	onHost.Precision = nn.Float32
	statesTolerance, gradientTolerance := tolerances(mode)

	// a pass of training, forward and backward
	p := training(7)
	want := encodeAs(t, host, p, tokens, onHost)
	at := make([][]float32, len(want))
	for l := range at {
		at[l] = normal(uint64(5+l), len(want[l]))
	}
	into := nn.NewGradients(params.All())
	host.backward(p, at, into)

	q := training(7)
	got, err := r.Encode(q, tokens, mode)
	if err != nil {
		t.Fatal(err)
	}
	for l := range want {
		if d, largest := apart(got[l], want[l]); d > statesTolerance*max(1, largest) {
			t.Errorf("states of level %d of %d differ by %g, the largest is %g", l, len(want), d, largest)
		}
	}
	r.backward(q, at)
	compareGradients(t, gradientsOf(t, r), params.All(), into, gradientTolerance)

	// without training, and of some rows alone
	evaluated := encodeAs(t, host, nn.NewPass(1), tokens, onHost)
	inMode := mode
	inMode.Read = []int{0, 7, len(tokens.IDs) - 1}
	if mode.Layers == nn.AllLayers {
		inMode.Read = nil
	}
	states, err := r.Encode(nn.NewPass(1), tokens, inMode)
	if err != nil {
		t.Fatal(err)
	}
	rows := inMode.Read
	if rows == nil {
		rows = []int{0, 1, 2, 3, len(tokens.IDs) - 1}
	}
	last := len(states) - 1
	for _, row := range rows {
		a, b := states[last][row*c.Width:][:c.Width], evaluated[last][row*c.Width:][:c.Width]
		if d, largest := apart(a, b); d > statesTolerance*max(1, largest) {
			t.Errorf("row %d differs by %g in evaluation", row, d)
		}
	}
}

// tolerances returns the differences from float32 on the processor that are allowed, as parts of the largest value.
func tolerances(mode encoders.Mode) (states, gradients float64) {
	switch {
	case mode.TF32:
		return 5e-3, 2e-2
	case mode.Precision == nn.BFloat16:
		return 2e-2, 1e-1
	}
	return 1e-5, 1e-4
}

// compareGradients compares gradients by the names of parameters with those of the processor.
func compareGradients(t *testing.T, got map[string][]float32, params []*nn.Param, want nn.Gradients,
	tolerance float64) {
	largestOfAll := 0.0
	for _, w := range params {
		_, largest := apart(want.Of(w), want.Of(w))
		largestOfAll = max(largestOfAll, largest)
	}
	for _, w := range params {
		// that of a key's bias is zero but for rounding
		d, largest := apart(got[w.Name], want.Of(w))
		if d > tolerance*max(largest, 1e-2*largestOfAll) {
			t.Errorf("gradient of %s differs by %g, the largest is %g, of all %g", w.Name, d, largest, largestOfAll)
		}
	}
}

func TestATextHasTheSameStatesAloneAndInAnyBatchOnADevice(t *testing.T) {
	for _, layout := range []string{"bert", "modernbert"} {
		c := tinyResident(layout, false, 0)
		c.MaxPositions = 90
		_, _, r := residentPair(t, c, "none")
		var texts [][]int32
		for _, length := range []int{1, 0, 3, 17, 64, 65, 80} {
			text := make([]int32, length)
			for i := range text {
				text[i] = int32((i*i + length) % c.Vocabulary)
			}
			texts = append(texts, text)
		}
		for _, precision := range []nn.Precision{nn.Float32, nn.BFloat16} {
			encode := func(tokens corpus.Tokens) []float32 {
				states, err := r.Encode(nn.NewPass(1), tokens,
					encoders.Mode{Layers: nn.LastLayer, Precision: precision})
				if err != nil {
					t.Fatal(err)
				}
				return states[0]
			}
			together := pack(texts...)
			all := encode(together)
			for b, text := range texts {
				if len(text) == 0 {
					continue
				}
				alone := encode(pack(text))
				if got := all[together.Rows.Starts[b]*c.Width:][:len(alone)]; !slices.Equal(got, alone) {
					t.Errorf("%s, %v: text %d of the batch differs from the same text alone", layout, precision, b)
				}
			}
		}
	}
}

// steps trains a resident encoder by so many steps, and returns its states after them.
func residentSteps(t *testing.T, r *resident, store nn.Store, first, n int) []float32 {
	t.Helper()
	tokens := someBatch()
	for step := first; step < first+n; step++ {
		store.Zero()
		p := training(uint64(step))
		states, err := r.Encode(p, tokens, encoders.Mode{Layers: nn.LastLayer})
		if err != nil {
			t.Fatal(err)
		}
		r.backward(p, [][]float32{normal(3, len(states[0]))})
		squares, err := store.SumSquares()
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Update(float32(min(1, 1/math.Sqrt(squares))), 1e-3); err != nil {
			t.Fatal(err)
		}
	}
	states, err := r.Encode(nn.NewPass(1), tokens, encoders.Mode{Layers: nn.LastLayer})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(states[0])
}

func TestADeviceTrainsAsTheProcessorDoes(t *testing.T) {
	for _, layout := range residentLayouts {
		for _, freeze := range []string{"none", "embeddings", "1"} {
			t.Run(layout+"/"+freeze, func(t *testing.T) {
				host, params, r := residentPair(t, tinyResident(layout, false, 0.1), freeze)
				got := residentSteps(t, r, r.newStore(0.01, 0), 1, 8)

				store := nn.NewHostStore(params.All(), nn.NewAdamW(0.01))
				tokens := someBatch()
				for step := range 8 {
					store.Zero()
					p := training(uint64(step + 1))
					states := encode(t, host, p, tokens, nn.LastLayer)
					host.backward(p, [][]float32{normal(3, len(states[0]))}, store.Gradients())
					squares, err := store.SumSquares()
					if err != nil {
						t.Fatal(err)
					}
					if err := store.Update(float32(min(1, 1/math.Sqrt(squares))), 1e-3); err != nil {
						t.Fatal(err)
					}
				}
				want := encode(t, host, nn.NewPass(1), tokens, nn.LastLayer)[0]
				if d, largest := apart(got, want); d > 1e-3*max(1, largest) {
					t.Errorf("states after training differ by %g, the largest is %g", d, largest)
				}
			})
		}
	}
}

func TestATrainingOnADeviceGoesOnFromItsState(t *testing.T) {
	c := tinyResident("bert", false, 0.1)
	_, _, whole := residentPair(t, c, "none")
	want := residentSteps(t, whole, whole.newStore(0.01, 0), 1, 4)

	_, _, first := residentPair(t, c, "none")
	store := first.newStore(0.01, 0)
	residentSteps(t, first, store, 1, 2)
	state, err := store.(nn.SnapshotStore).State()
	if err != nil {
		t.Fatal(err)
	}
	_, _, second := residentPair(t, c, "none")
	next := second.newStore(0.01, 0)
	if err := next.(nn.SnapshotStore).SetState(state); err != nil {
		t.Fatal(err)
	}
	if got := residentSteps(t, second, next, 3, 2); !slices.Equal(got, want) {
		t.Error("a training that goes on from a state has other states than one without a break")
	}
	if err := next.(nn.SnapshotStore).SetState(state[1:]); err == nil {
		t.Error("a state that lacks a parameter is no error")
	}
}

func TestADeviceTakesTheStateOfTheProcessor(t *testing.T) {
	_, _, r := residentPair(t, tinyResident("bert", false, 0), "none")
	store := r.newStore(0.01, 0).(*deviceStore)
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	for i := range state { // without updates of a parameter
		if i == 1 {
			continue
		}
		state[i].Steps = 3
		for _, name := range slotNames {
			values := normal(uint64(i), len(state[i].Values))
			state[i].Slots = append(state[i].Slots, nn.Slot{Name: name, Values: values})
		}
	}
	if err := store.SetState(state); err != nil {
		t.Fatal(err)
	}
	got, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got { // in the same order
		want := make([]float32, len(p.Values))
		if i != 1 {
			want = state[i].Slots[1].Values
		}
		if p.Steps != 3 || !slices.Equal(p.Slots[1].Values, want) || !slices.Equal(p.Values, state[i].Values) {
			t.Errorf("%s has another state than it was given, after %d steps", p.Name, p.Steps)
		}
	}
}

func TestADeviceReturnsFrozenParameters(t *testing.T) {
	for _, layout := range residentLayouts {
		for _, freeze := range []string{"none", "1", "all"} {
			_, params, r := residentPair(t, tinyResident(layout, true, 0), freeze)
			frozen, err := r.frozen()
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			for _, w := range params.All() {
				if w.Learns() {
					continue
				}
				if i == len(frozen) || frozen[i].Name != w.Name || !slices.Equal(frozen[i].Data, w.Data) {
					t.Fatalf("%s, freeze %s: %s is not among the %d frozen parameters, or differs", layout, freeze,
						w.Name, len(frozen))
				}
				i++
			}
			if i != len(frozen) {
				t.Errorf("%s, freeze %s: %d frozen parameters, want %d", layout, freeze, len(frozen), i)
			}
		}
	}
}

// TestADeviceServesManyAtOnce encodes batches of several lengths by many goroutines, beside a training.
func TestADeviceServesManyAtOnce(t *testing.T) {
	for _, layout := range residentLayouts {
		_, _, r := residentPair(t, tinyResident(layout, false, 0.1), "none")
		store := r.newStore(0.01, 0)
		store.Zero()
		var want [6][][]float32
		var texts [6]corpus.Tokens
		for i := range want {
			ids := make([]int32, 3+i)
			for j := range ids {
				ids[j] = int32(3 + (7*i+5*j)%27)
			}
			texts[i] = pack(ids)
			states, err := r.Encode(nn.NewPass(1), texts[i], encoders.Mode{Layers: nn.AllLayers})
			if err != nil {
				t.Fatal(err)
			}
			for _, level := range states {
				want[i] = append(want[i], slices.Clone(level))
			}
		}
		r.inference.free()
		r.inference = nil
		var group sync.WaitGroup
		for i := range want {
			group.Go(func() {
				for range 5 {
					got, err := r.Encode(nn.NewPass(1), texts[i], encoders.Mode{Layers: nn.AllLayers})
					if err != nil || !slices.EqualFunc(got, want[i], slices.Equal) {
						t.Errorf("%s: text %d has other states among others, or fails: %v", layout, i, err)
					}
				}
			})
		}
		group.Go(func() {
			p, tokens := training(3), someBatch()
			states, err := r.Encode(p, tokens, encoders.Mode{})
			if err != nil {
				t.Error(err)
				return
			}
			r.backward(p, [][]float32{normal(1, len(states[0]))})
		})
		group.Wait()
	}
}

func TestADeviceReservesMemoryForATraining(t *testing.T) {
	if cudatest.Real() {
		t.Skip("its memory has no limit for tests")
	}
	for _, mode := range []encoders.Mode{{}, {Layers: nn.AllLayers}, {Precision: nn.BFloat16}} {
		_, _, r := residentPair(t, tinyResident("bert", false, 0.1), "none")
		r.newStore(0.01, 0).Zero()
		tokens := someBatch()
		if err := r.reserve(len(tokens.IDs), mode); err != nil {
			t.Fatal(err)
		}
		t.Setenv("JENGA_HOSTCUDA_MEMORY", "1") // nothing more
		p := training(3)
		states, err := r.Encode(p, tokens, mode)
		if err != nil {
			t.Fatalf("%+v: %v", mode, err)
		}
		r.backward(p, states)
		if err := r.gpu.Synchronize(); err != nil {
			t.Error(err)
		}
		var full *cuda.OutOfMemory
		if err := r.reserve(len(tokens.IDs)+1, mode); !errors.As(err, &full) {
			t.Errorf("%+v: memory for a longer batch: %v", mode, err)
		}
		t.Setenv("JENGA_HOSTCUDA_MEMORY", "")
	}
}

func TestADeviceWithoutMemorySaysSo(t *testing.T) {
	if cudatest.Real() {
		t.Skip("its memory has no limit for tests")
	}
	_, _, r := residentPair(t, tinyResident("modernbert", false, 0), "none")
	tokens := someBatch()
	if _, err := r.Encode(nn.NewPass(1), tokens, encoders.Mode{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // angles, without which states would be wrong
		clear(r.angles)
		t.Setenv("JENGA_HOSTCUDA_MEMORY", "1")
		var full *cuda.OutOfMemory
		if _, err := r.Encode(nn.NewPass(1), tokens, encoders.Mode{}); !errors.As(err, &full) {
			t.Errorf("Encode without memory: %v", err)
		}
	}
}

func TestPassesAtOnceOnADevice(t *testing.T) {
	_, _, r := residentPair(t, tinyResident("bert", false, 0), "none")
	tokens := someBatch()
	mode := encoders.Mode{Layers: nn.LastLayer}
	states, err := r.Encode(nn.NewPass(1), tokens, mode)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(states[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			mode := mode
			for _, read := range [][]int{nil, {0, 3}} {
				mode.Read = read
				states, err := r.Encode(nn.NewPass(1), tokens, mode)
				if err != nil {
					t.Error(err)
					return
				}
				if width := r.config.Width; !slices.Equal(states[0][3*width:4*width], want[3*width:4*width]) {
					t.Error("a pass beside others has other states")
				}
			}
		})
	}
	all.Wait()
}

func TestNetworksThatADeviceDoesNotCompute(t *testing.T) {
	for want, c := range map[string]config{
		`model_type "mpnet", whose attention has biases for distances`: tiny("mpnet"),
		`model_type "electra" with embeddings of another width`:        tiny("electra"),
		"a width of 4100, more than 4096,": func() config {
			c := tiny("bert")
			c.Width, c.Heads, c.FeedForward = 4100, 2, 8
			return c
		}(),
	} {
		e, _ := network(t, c, "none")
		if err := e.unsupported(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, layout := range residentLayouts {
		if e, _ := network(t, tiny(layout), "none"); e.unsupported() != nil {
			t.Errorf("%s: %v", layout, e.unsupported())
		}
	}
}

func TestADeviceSavesWhatItHasLearned(t *testing.T) {
	_, _, r := residentPair(t, tinyResident("modernbert", false, 0), "none")
	want := residentSteps(t, r, r.newStore(0.01, 0), 1, 2)
	folder := t.TempDir()
	if err := r.Describe().Save(nil)(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	e, err := New(defaults, encoders.Env{Model: folder, Freeze: encoders.FreezeAll, Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Encode(nn.NewPass(1), someBatch(), encoders.Mode{Layers: nn.LastLayer})
	if err != nil {
		t.Fatal(err)
	}
	if d, largest := apart(got[0], want); d > 1e-5*max(1, largest) {
		t.Errorf("states of the saved encoder differ by %g, the largest is %g", d, largest)
	}
}
