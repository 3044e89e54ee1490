package encoders

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

func TestABiLSTMThatCannotBeOpened(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "encoder")
	e, err := NewBiLSTM(BiLSTMOptions{Embedding: 6, Layers: 2, Hidden: 5},
		Env{Vocabulary: 20, Params: nn.NewParams(3).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Describe().Save(nil)(folder); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, want string }{
		"sizes that are too large":          {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":1000000000}`, "hidden: want a whole number in [1, 8192], have 1000000000"},
		"sizes that are too large together": {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":64,"hidden":8192}`, "a bilstm of this size has 102010060920 parameters; want at most 1073741824"},
		"another model":                     {`{"model_type":"bert"}`, `model_type is "bert"; want bilstm`},
		"other sizes":                       {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":7}`, filepath.Join(folder, "model.safetensors") + `: tensor "layer.0.forward.input" has shape [6 20]; config.json requires [6 28]`},
		"a vocabulary that is not there":    {`{"model_type":"bilstm","vocab_size":8000000,"embedding":64,"layers":2,"hidden":5}`, `tensor "embeddings.weight" has shape [20 6]; config.json requires [8000000 64]`},
		"fewer layers":                      {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":1,"hidden":5}`, `unexpected tensor "layer.1.forward.input": config.json has no such parameter`},
		"a smaller vocabulary":              {`{"model_type":"bilstm","vocab_size":19,"embedding":6,"layers":2,"hidden":5}`, "vocab_size is 19, but the tokenizer has 20"},
		"no JSON": {`{`,
			filepath.Join(folder, "config.json") + ":1: not JSON: unexpected end of JSON input"},
		"a size that is no number": {"{\"model_type\":\"bilstm\",\n\"layers\":\"2\"}",
			filepath.Join(folder, "config.json") + ":2: layers is a string; want a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := NewBiLSTM(bilstmDefaults, Env{Model: folder, Vocabulary: 20, Params: nn.NewParams(9)})
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
				t.Errorf("it took %d bytes", after.TotalAlloc-before.TotalAlloc)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestABiLSTMsDropout(t *testing.T) {
	tokens := corpus.Tokens{IDs: []int32{1, 2, 3, 4, 5},
		Rows: nn.Rows{Starts: []int{0, 3, 5}, Segment: make([]int8, 5), Example: []int{0, 1}}}
	states := func(freeze string, dropout float64, training bool, serial uint64) [][]float32 {
		e, err := NewBiLSTM(BiLSTMOptions{Embedding: 6, Layers: 3, Hidden: 5},
			Env{Vocabulary: 20, Dropout: dropout, DropoutSet: true, Freeze: freeze,
				Params: nn.NewParams(3).In("encoder")})
		if err != nil {
			t.Fatal(err)
		}
		p := nn.NewPass(7)
		p.Reset(serial)
		p.Training = training
		layers, err := e.Encode(p, tokens, Mode{Layers: nn.AllLayers})
		if err != nil {
			t.Fatal(err)
		}
		return layers
	}
	judged := states("none", 0.5, false, 1)
	for _, c := range []struct {
		what      string
		layers    [][]float32
		unchanged int // layers that are as judged, from below
	}{
		{"in training", states("none", 0.5, true, 1), 1}, // nothing is dropped before the first
		{"in another step", states("none", 0.5, true, 2), 1},
		{"without dropout", states("none", 0, true, 1), 3},
		{"with the first layer frozen", states("1", 0.5, true, 1), 1},
		{"with two layers frozen", states("2", 0.5, true, 1), 2},
		{"with all frozen", states("all", 0.5, true, 1), 3},
	} {
		for l := range judged {
			if got, want := slices.Equal(c.layers[l], judged[l]), l < c.unchanged; got != want {
				t.Errorf("%s layer %d is as it is judged: %v, want %v", c.what, l+1, got, want)
			}
		}
	}
	if slices.Equal(states("none", 0.5, true, 1)[1], states("none", 0.5, true, 2)[1]) {
		t.Error("two steps drop the same features")
	}
}
