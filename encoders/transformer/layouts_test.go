package transformer

import (
	"encoding/binary"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// The folders that scripts/fixtures/layouts.py writes.
var fixtureNames = []string{"roberta", "xlm-roberta", "camembert", "electra", "mpnet", "modernbert",
	"modernbert-biases"}

func layoutModel(name string) string { return filepath.Join("testdata", "layouts", name) }

// layoutText makes a text as the script's text does.
func layoutText(number, length int) []int32 {
	ids := make([]int32, length)
	for i := range ids {
		ids[i] = int32(3 + (number*7919+i*104729+i*i*31)%(37-3))
	}
	return ids
}

// computedByPyTorch returns a function that reads a fixture's tensors by name.
func computedByPyTorch(t *testing.T, name string) func(tensor string) []float32 {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(layoutModel(name), "pytorch.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return func(tensor string) []float32 {
		values, err := file.Floats(tensor)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
}

func TestLayoutsAreThoseOfTransformers(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			want := computedByPyTorch(t, name)
			e := openModel(t, layoutModel(name))
			tokens := pack(layoutText(0, 7), layoutText(1, 1), layoutText(2, 26), []int32{5, 1, 9, 1, 12})
			p := training(1)
			states := encode(t, e, p, tokens, nn.AllLayers)
			d := farthest(slices.Concat(states...), want("states"))
			if !(d <= 1e-5) {
				t.Errorf("states are up to %v from PyTorch's", d)
			}

			into := nn.NewGradients(e.params.All())
			rows := len(tokens.IDs) * e.config.Width
			e.backward(p, slices.Collect(slices.Chunk(want("upstream"), rows)), into)
			far, largest, at := gradientDistance(e, into, want)
			if !(far <= 1e-4*largest) {
				t.Errorf("the gradient of %s is up to %v from PyTorch's; the largest of all is %v", at, far, largest)
			}
			t.Logf("states %.2g; gradients %.2g of the largest", d, far/largest)
		})
	}
}

// gradientDistance returns the largest difference of a gradient from PyTorch's and its parameter, and PyTorch's largest
// number.
func gradientDistance(e *encoder, into nn.Gradients, want func(string) []float32) (far, largest float64, at string) {
	for _, p := range e.parameters {
		all := want("gradient " + p.in.name)
		size := len(all) / p.in.of
		all = all[p.in.row*size : (p.in.row+1)*size]
		got := into.Of(p.Param)
		if p.linear != nil {
			got = make([]float32, len(got))
			kernel.Transpose(got, into.Of(p.Param), p.shape[1], p.shape[0])
		}
		if d := farthest(got, all); !(d <= far) {
			far, at = d, p.name
		}
		largest = max(largest, farthest(all, make([]float32, len(all))))
	}
	return far, largest, at
}

// TestLayoutsTrainAsInPyTorch compares the losses of 30 steps of AdamW.
func TestLayoutsTrainAsInPyTorch(t *testing.T) {
	const steps, warmup, rate = 30, 10, 1e-3 // the script's
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			want := computedByPyTorch(t, name)("trace")
			e := openModel(t, layoutModel(name))
			store := nn.NewHostStore(e.params.All(), nn.NewAdamW(0.01))
			var worst float64
			for n := range steps {
				p := training(uint64(n))
				loss, d := distanceFromFormula(t, e, p, n)
				worst = max(worst, difference(loss, float64(want[n])))
				store.Zero()
				e.backward(p, [][]float32{d}, store.Gradients())
				now := rate * float64(n+1) / warmup
				if n+1 > warmup {
					now = rate * float64(steps-n-1) / (steps - warmup)
				}
				squares, err := store.SumSquares()
				if err != nil {
					t.Fatal(err)
				}
				store.Update(nn.ClipFactor(math.Sqrt(squares), 1), now)
			}
			if !(worst <= 1e-4) {
				t.Errorf("a loss is %v from PyTorch's, want at most 1e-4", worst)
			}
			t.Logf("losses %.2g, from %.4f to %.4f", worst, want[0], want[steps-1])
		})
	}
}

// distanceFromFormula returns the mean square of the differences between the last states of batch n and the numbers of
// scripts/fixtures/descent.py's start, and its gradient at the states.
func distanceFromFormula(t *testing.T, e *encoder, p *nn.Pass, n int) (loss float64, d []float32) {
	texts := [][]int32{layoutText(100+3*n, 4), layoutText(101+3*n, 11+n%5), layoutText(102+3*n, 20)}
	states := encode(t, e, p, pack(texts...), nn.LastLayer)[0]
	d = make([]float32, len(states))
	at := 0
	for b, text := range texts {
		for k := range len(text) * e.config.Width {
			u := (uint64(k)*2654435761 + uint64(3*n+b)) % (1 << 32)
			target := 20 * float64(float32((float64(u)/(1<<32)-0.5)*0.07))
			off := float64(states[at]) - target
			loss += off * off / float64(len(states))
			d[at] = float32(2 * off / float64(len(states)))
			at++
		}
	}
	return loss, d
}

// TestLayoutsAreSavedAsTheyWere compares the tensors that Save writes with those that were read.
func TestLayoutsAreSavedAsTheyWere(t *testing.T) {
	for _, name := range fixtureNames {
		e := openModel(t, layoutModel(name))
		dir := save(t, e)
		got, want := byName(t, filepath.Join(dir, "model.safetensors")), byName(t,
			filepath.Join(layoutModel(name), "model.safetensors"))
		if len(got) != len(want) {
			t.Errorf("%s: %d tensors, want %d", name, len(got), len(want))
		}
		for tensor := range want {
			equalTensors(t, tensor, got[tensor], want[tensor])
		}
		equalParameters(t, openModel(t, dir), e)

		// Made from scratch, its config.json has the same meaning.
		c, _ := newEncoder(e.config, encoders.Env{Params: nn.NewParams(1)})
		if again := openModel(t, save(t, c)); !reflect.DeepEqual(again.config, e.config) {
			t.Errorf("%s: config is %+v, want %+v", name, again.config, e.config)
		}
	}
}

// TestLayoutsInSmallerFloats reads weights in float16 and bfloat16, under the prefix of models for a task.
func TestLayoutsInSmallerFloats(t *testing.T) {
	for _, name := range fixtureNames {
		want := openModel(t, layoutModel(name))
		for _, dtype := range []string{"F16", "BF16"} {
			tensors := readTensors(t, filepath.Join(layoutModel(name), "model.safetensors"))
			for i, tensor := range tensors {
				tensors[i] = safetensors.Tensor{Name: want.config.layout.prefix + tensor.Name, Shape: tensor.Shape,
					DType: dtype, Raw: halved(tensor.Data, dtype)}
			}
			dir := folder(t, map[string]string{
				"config.json": content(t, filepath.Join(layoutModel(name), "config.json")),
			})
			writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)
			got := openModel(t, dir)
			for i, w := range want.params.All() {
				if d := farthest(got.params.All()[i].Data, w.Data); !(d > 0 && d <= 0.02) {
					t.Errorf("%s in %s: %s is up to %v from float32", name, dtype, w.Name, d)
				}
			}
		}
	}
}

// halved encodes values, of at most 2 in magnitude, in 16 bits; those below float16's normal numbers become zero.
func halved(values []float32, dtype string) (raw []byte) {
	for _, v := range values {
		bits := math.Float32bits(v)
		half := uint16(bits >> 16)
		if dtype == "F16" {
			half = uint16(bits >> 16 & 0x8000)
			if exponent := int(bits>>23&0xff) - 127 + 15; exponent > 0 {
				half |= uint16(exponent)<<10 | uint16(bits>>13&0x3ff)
			}
		}
		raw = binary.LittleEndian.AppendUint16(raw, half)
	}
	return raw
}

// somePass returns the states and gradients of a training pass over a batch.
func somePass(t *testing.T, e *encoder, tokens corpus.Tokens, mode encoders.Mode) []float32 {
	t.Helper()
	p := training(5)
	all := slices.Clone(encodeAs(t, e, p, tokens, mode)[0])
	into := nn.NewGradients(e.params.All())
	for range 2 { // a weighting may require the gradient of each task
		e.backward(p, [][]float32{normal(7, len(tokens.IDs)*e.config.Width)}, into)
	}
	for _, w := range e.params.All() {
		all = append(all, into.Of(w)...)
	}
	return all
}

func TestLayoutsRecomputeToTheSameBits(t *testing.T) {
	for _, layout := range testedLayouts {
		c := tiny(layout)
		c.Dropout, c.AttentionDropout, c.Layers = 0.1, 0.1, 4
		for _, freeze := range []string{"none", "1"} {
			e, _ := network(t, c, freeze)
			want := somePass(t, e, someBatch(), encoders.Mode{})
			got := somePass(t, e, someBatch(), encoders.Mode{Recompute: true})
			if !slices.Equal(got, want) {
				t.Errorf("%s, freeze %s: other bits where the blocks are computed again", layout, freeze)
			}
		}
	}
}

func TestLayoutsInInt8AreNear(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		states := func(precision nn.Precision) []float32 {
			mode := encoders.Mode{Layers: nn.AllLayers, Precision: precision}
			return slices.Concat(encodeAs(t, e, nn.NewPass(0), someBatch(), mode)...)
		}
		if d := relativeDistance(states(nn.Int8), states(nn.Float32)); !(d > 1e-4 && d < 0.01) {
			t.Errorf("%s: products of int8 change states by %v", layout, d)
		}
	}
}

func TestLayoutsInBFloat16AreNear(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		want := somePass(t, e, someBatch(), encoders.Mode{})
		got := somePass(t, e, someBatch(), encoders.Mode{Precision: nn.BFloat16})
		if d := relativeDistance(got, want); !(d > 1e-5 && d < 0.05) { // 2⁻⁸ a factor
			t.Errorf("%s: products of bfloat16 change states and gradients by %v", layout, d)
		}
	}
}

func TestLayoutsHaveLoRA(t *testing.T) {
	for _, layout := range testedLayouts {
		e, params := network(t, tiny(layout), "none")
		o := encoders.LoRA{Rank: 2, Alpha: 3}
		for _, t := range e.blocks[0].targets() {
			o.Targets = append(o.Targets, t.name)
		}
		if err := e.addLoRA(o, params.In("encoder").In("lora")); err != nil {
			t.Fatal(err)
		}
		for i, w := range params.In("encoder").In("lora").All() {
			copy(w.Data, normal(uint64(i), len(w.Data)))
			w.Changed()
		}
		p := training(1)
		want := slices.Clone(encode(t, e, p, someBatch(), nn.LastLayer)[0])
		into := nn.NewGradients(params.All())
		e.backward(p, [][]float32{normal(3, len(want))}, into)
		for _, w := range params.All() {
			if moved := into.Has(w) && length(into.Of(w)) > 0; moved != strings.Contains(w.Name, ".lora.") {
				t.Errorf("%s: %s has a gradient: %v", layout, w.Name, moved)
			}
		}
		opened := openModel(t, save(t, e))
		got := encode(t, opened, nn.NewPass(1), someBatch(), nn.LastLayer)[0]
		if d := relativeDistance(got, want); !(d <= 1e-6) {
			t.Errorf("%s: saved and opened it gives states %v from its own", layout, d)
		}
	}
}

func TestLayoutsTakeTheMemoryThatTheyEstimate(t *testing.T) {
	for _, layout := range testedLayouts {
		c := tiny(layout)
		c.Layers, c.MaxPositions = 4, 200
		for _, freeze := range []string{"none", "embeddings", "2"} {
			for _, recompute := range []bool{false, true} {
				e, params := network(t, c, freeze)
				tokens := someTexts(5, 20, 90, c.Vocabulary)
				p := training(1)
				states := encodeAs(t, e, p, tokens, encoders.Mode{Recompute: recompute})
				e.backward(p, make([][]float32, len(states)), nn.NewGradients(params.All()))
				got := e.estimate(encoders.Workload{Tokens: len(tokens.IDs), Training: true, Recompute: recompute})
				got -= e.packedMemory(true)
				if want := p.Bytes(); got < want*97/100 || got > want*103/100 {
					t.Errorf("%s, freeze %s: Memory = %d bytes, a pass takes %d", layout, freeze, got, want)
				}
			}
		}
	}
}

// TestBuckets compares the buckets with those of transformers' MPNetEncoder.relative_position_bucket, by their first
// distances.
func TestBuckets(t *testing.T) {
	first := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91, 1101}
	for b := range 16 {
		for n := first[b]; n < first[b+1]; n++ {
			if got := bucket(-n); got != b {
				t.Errorf("a key %d tokens before is in bucket %d, want %d", n, got, b)
			}
			if got := bucket(n); n > 0 && got != b+16 {
				t.Errorf("a key %d tokens after is in bucket %d, want %d", n, got, b+16)
			}
		}
	}
}

// TestLayoutsHaveThePartsThatTheyDeclare compares the parts of a layout with those of its networks.
func TestLayoutsHaveThePartsThatTheyDeclare(t *testing.T) {
	for _, l := range layouts {
		made := map[string]bool{}
		for _, p := range parametersOf(l.defaults()) {
			if layer, ok := strings.CutPrefix(p.name, layersHere); ok {
				_, p.name, _ = strings.Cut(layer, ".")
			}
			made[p.name[:strings.LastIndexByte(p.name, '.')]] = true
		}
		want := slices.Sorted(maps.Keys(l.parts))
		if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, want) {
			t.Errorf("%s: networks have %q, declared are %q", l.name, got, want)
		}
	}
}
