package transformer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
)

// stateLengths are the lengths of the texts of scripts/fixtures/states.py.
var stateLengths = []int{1, 2, 3, 5, 8, 17, 33, 64, 100, 128, 200, 300}

// stateTexts makes those texts, as one batch.
func stateTexts(lengths []int, vocabulary int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for number, length := range lengths {
		for i := range length {
			segment := int8(0)
			if number%2 == 1 && i >= length/2 {
				segment = 1
			}
			tokens.IDs = append(tokens.IDs, int32((number*7919+i*104729+i*i*31)%vocabulary))
			tokens.Rows.Segment = append(tokens.Rows.Segment, segment)
		}
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, number)
	}
	return tokens
}

// openModel opens a model for evaluation.
func openModel(t testing.TB, path string) *encoder {
	t.Helper()
	e, err := New(Options{}, encoders.Env{Model: path, Params: nn.NewParams(1).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	return e.(*encoder)
}

// evaluate returns the states [T D] of all texts, encoded as one batch.
func evaluate(t testing.TB, e *encoder, tokens corpus.Tokens) []float32 {
	t.Helper()
	states, err := e.Encode(nn.NewPass(1), tokens, encoders.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

func TestStatesAreThoseOfTransformers(t *testing.T) {
	models := filepath.Join(shared.Dir(t), "models")
	lengths := stateLengths[:7]
	if shared.Long() {
		lengths = stateLengths
	}
	tests := []struct{ name, fixture, path string }{
		{"minilm-l6 from safetensors", "minilm-l6", filepath.Join(models, "minilm-l6")},
		{"distil-l6 from float16 safetensors", "distil-l6", filepath.Join(models, "distil-l6")},
		{"distil-l6 from ONNX", "distil-l6", filepath.Join(models, "distil-l6", "model.onnx")},
		// Written by scripts/export_onnx.py.
		{"minilm-l6 from ONNX", "minilm-l6", os.Getenv("JENGA_MINILM_ONNX")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.path == "" {
				t.Skip("JENGA_MINILM_ONNX names no .onnx file")
			}
			e := openModel(t, test.path)
			states := evaluate(t, e, stateTexts(lengths, e.config.Vocabulary))
			dump(t, test.fixture+"-"+filepath.Ext(test.path)+".bin", states)

			fixture, err := os.Open(filepath.Join("testdata", "states", test.fixture+".bin"))
			if err != nil {
				t.Fatal(err)
			}
			defer fixture.Close()
			if d := largestDifference(t, fixture, states, e.config.Width); d > 1e-5 {
				t.Errorf("a state is %.3g from transformers', want at most 1e-5", d)
			} else {
				t.Logf("states are at most %.3g from transformers'", d)
			}
		})
	}
}

// largestDifference reads a fixture of scripts/fixtures/states.py and compares states [T width] with it. The difference
// of a row's sum is divided by √width.
func largestDifference(t *testing.T, fixture io.Reader, states []float32, width int) float64 {
	const step = 16
	largest := 0.0
	for row := range len(states) / width {
		state := states[row*width:][:width]
		some := make([]float32, (width-row%step+step-1)/step)
		var want, got float64
		if err := binary.Read(fixture, binary.LittleEndian, some); err != nil {
			t.Fatal(err)
		}
		if err := binary.Read(fixture, binary.LittleEndian, &want); err != nil {
			t.Fatal(err)
		}
		for i, v := range some {
			largest = max(largest, difference(float64(v), float64(state[row%step+i*step])))
		}
		for _, v := range state {
			got += float64(v)
		}
		largest = max(largest, difference(want, got)/math.Sqrt(float64(width)))
	}
	return largest
}

// difference is infinite where one of the numbers is NaN.
func difference(a, b float64) float64 {
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// dump writes states to the folder JENGA_DUMP, for scripts/fixtures/states.py --full.
func dump(t *testing.T, name string, states []float32) {
	folder := os.Getenv("JENGA_DUMP")
	if folder == "" {
		return
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, states); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStatesThatAreReadAreTheSameBits(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, layers := range []int{1, 3} {
			c := tiny(layout)
			c.Layers = layers
			e, _ := network(t, c, "none")
			for _, precision := range []nn.Precision{nn.Float32, nn.BFloat16, nn.Int8} {
				t.Run(fmt.Sprintf("%s/%d/%v", layout, layers, precision), func(t *testing.T) {
					checkRows(t, e, precision)
				})
			}
		}
	}
}

// checkRows checks the states of some rows, in one pass after the other.
func checkRows(t *testing.T, e *encoder, precision nn.Precision) {
	p, tokens := nn.NewPass(0), someBatch()
	states := func(read []int, layers nn.LayerSet) []float32 {
		p.Reset(0)
		mode := encoders.Mode{Layers: layers, Precision: precision, Read: read}
		return slices.Concat(encodeAs(t, e, p, tokens, mode)...)
	}
	want, wantAll := states(nil, nn.LastLayer), states(nil, nn.AllLayers)
	most := make([]int, len(tokens.IDs)-1)
	for i := range most {
		most[i] = i + 1
	}
	for _, read := range [][]int{{0}, {0, 7, 8}, {3, 16}, most} {
		if err := rowsOf(states(read, nn.LastLayer), want, read, e.config.Width); err != nil {
			t.Errorf("rows %v: %v", read, err)
		}
		if !slices.Equal(states(read, nn.AllLayers), wantAll) {
			t.Errorf("rows %v: other states of all layers", read)
		}
	}
}

// rowsOf returns an error unless got has the rows of want that are read, and NaN in all others.
func rowsOf(got, want []float32, read []int, width int) error {
	for row := range len(want) / width {
		got, want := got[row*width:(row+1)*width], want[row*width:(row+1)*width]
		if slices.Contains(read, row) {
			if !slices.Equal(got, want) {
				return fmt.Errorf("row %d is %v, want %v", row, got, want)
			}
			continue
		}
		for _, x := range got {
			if !math.IsNaN(float64(x)) {
				return fmt.Errorf("row %d, which is not read, is %v", row, got)
			}
		}
	}
	return nil
}

func TestAttentionMapsAreThoseOfAllTokensWhateverIsRead(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		maps := func(read []int) (all []float32) {
			p := nn.NewPass(0)
			for layer := range e.blocks {
				p.Observe(nn.AttentionMaps(layer), func(_ int, _ []int, values []float32) {
					all = append(all, values...)
				})
			}
			encodeAs(t, e, p, someBatch(), encoders.Mode{Read: read})
			return all
		}
		if want := maps(nil); len(want) == 0 || !slices.Equal(maps([]int{0}), want) {
			t.Errorf("%s: other attention maps where one row is read", layout)
		}
	}
}

func TestTrainingComputesAllStates(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, freeze := range []string{"none", "all"} {
			e, _ := network(t, tiny(layout), freeze)
			want := somePass(t, e, someBatch(), encoders.Mode{})
			got := somePass(t, e, someBatch(), encoders.Mode{Read: []int{0}})
			if !slices.Equal(got, want) {
				t.Errorf("%s, freeze %s: other states or gradients where one row is read", layout, freeze)
			}
		}
	}
}

func TestAnUnpackedPassLeavesPackedWeightsAsTheyAre(t *testing.T) {
	e, _ := network(t, tiny("bert"), "all")
	tokens := someBatch()
	states := func(precision nn.Precision, unpacked bool) []float32 {
		mode := encoders.Mode{Precision: precision, Unpacked: unpacked}
		return slices.Clone(encodeAs(t, e, nn.NewPass(1), tokens, mode)[0])
	}
	want := states(nn.Float32, false)
	states(nn.Int8, false)
	kept := e.blocks[0].attention.query.packed.Load()
	if got := states(nn.Float32, true); !slices.Equal(got, want) {
		t.Errorf("states are up to %v from those of packed weights", farthest(got, want))
	}
	if after := e.blocks[0].attention.query.packed.Load(); after != kept || kept.precision != nn.Int8 {
		t.Error("the packed weights were replaced")
	}
}
