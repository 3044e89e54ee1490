package transformer

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// save writes an encoder to a new folder.
func save(t *testing.T, e *encoder) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "encoder")
	if err := e.save(nil)(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// byName returns the tensors of a safetensors file.
func byName(t *testing.T, path string) map[string]safetensors.Tensor {
	t.Helper()
	tensors := map[string]safetensors.Tensor{}
	for _, tensor := range readTensors(t, path) {
		tensors[tensor.Name] = tensor
	}
	return tensors
}

func equalTensors(t *testing.T, name string, got, want safetensors.Tensor) {
	t.Helper()
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) ||
		!bytes.Equal(got.Raw, want.Raw) {
		t.Errorf("tensor %q is not what was read", name)
	}
}

func TestSaveWritesBackWhatWasRead(t *testing.T) {
	for _, name := range []string{"bert", "distilbert"} {
		t.Run(name, func(t *testing.T) {
			got := byName(t, filepath.Join(save(t, openModel(t, tinyModel(name))), "model.safetensors"))
			want := byName(t, filepath.Join(tinyModel(name), "model.safetensors"))
			if len(got) != len(want) {
				t.Errorf("%d tensors, want %d", len(got), len(want))
			}
			for name := range want {
				equalTensors(t, name, got[name], want[name])
			}
		})
	}
	t.Run("what the network does not need, under its prefix", func(t *testing.T) {
		dir := folder(t, map[string]string{"config.json": `{"x": [1.50, "ü"], "torch_dtype": "float16",` +
			strings.TrimPrefix(content(t, filepath.Join(tinyModel("bert"), "config.json")), "{")})
		tensors := readTensors(t, filepath.Join(tinyModel("bert"), "model.safetensors"))
		for i := range tensors {
			tensors[i].Name = "bert." + oldName(tensors[i].Name)
		}
		tensors = append(tensors,
			safetensors.Tensor{Name: "bert.embeddings.position_ids", Shape: []int{1, 12}, DType: "I64",
				Raw: bytes.Repeat([]byte{1, 2, 3}, 32)},
			// NaN too
			safetensors.Tensor{Name: "cls.predictions.bias", Shape: []int{3}, DType: "F16",
				Raw: []byte{0, 0x7e, 1, 2, 3, 4}})
		writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)

		saved := save(t, openModel(t, dir))
		got := byName(t, filepath.Join(saved, "model.safetensors"))
		for _, want := range tensors {
			name := want.Name
			for old, today := range map[string]string{".gamma": ".weight", ".beta": ".bias"} {
				if stem, ok := strings.CutSuffix(name, old); ok {
					name = stem + today
				}
			}
			equalTensors(t, name, got[name], want)
		}
		if len(got) != len(tensors) {
			t.Errorf("%d tensors, want %d", len(got), len(tensors))
		}
		config := content(t, filepath.Join(saved, "config.json"))
		for _, want := range []string{"1.50", `"ü"`, `"torch_dtype": "float32"`, `"model_type": "bert"`} {
			if !strings.Contains(config, want) {
				t.Errorf("config.json is\n%s\nwant %s in it", config, want)
			}
		}
	})
}

func TestWhatIsSavedOpensWithTheSameBits(t *testing.T) {
	learned := func(t *testing.T, e *encoder) *encoder { // no value as it was
		for _, w := range e.params.All() {
			for i := range w.Data {
				w.Data[i] = w.Data[i]*1.25 + 0.125
			}
		}
		return e
	}
	scratch := func(c config) func(t *testing.T) *encoder {
		return func(t *testing.T) *encoder {
			e, err := newEncoder(c, encoders.Env{Params: nn.NewParams(7)})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
	c := config{layout: &bertLayout, Vocabulary: 9, Layers: 1, Width: 6, Heads: 3, FeedForward: 5, MaxPositions: 4,
		Types: 2, Epsilon: 1e-6, Dropout: 0.25, AttentionDropout: 0.5}
	d := c
	d.layout, d.Types, d.Epsilon = &distilbertLayout, 0, 1e-12
	tests := []struct {
		name string
		make func(t *testing.T) *encoder
	}{
		{"BERT from safetensors", func(t *testing.T) *encoder { return openModel(t, tinyModel("bert")) }},
		{"BERT from ONNX", func(t *testing.T) *encoder {
			return openModel(t,
				filepath.Join(tinyModel("bert"), "dynamo.onnx"))
		}},
		{"DistilBERT from ONNX", func(t *testing.T) *encoder {
			return openModel(t, filepath.Join(tinyModel("distilbert"), "torchscript.onnx"))
		}},
		{"BERT from scratch", scratch(c)},
		{"DistilBERT from scratch", scratch(d)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := learned(t, test.make(t))
			dir := save(t, e)
			again := openModel(t, dir)
			if !reflect.DeepEqual(again.config, e.config) {
				t.Errorf("config is %+v, want %+v", again.config, e.config)
			}
			for i, w := range e.params.All() {
				if !slices.Equal(again.params.All()[i].Data, w.Data) {
					t.Errorf("parameter %s differs", w.Name)
				}
			}

			twice := save(t, again)
			for _, file := range []string{"config.json", "model.safetensors"} {
				if content(t, filepath.Join(dir, file)) != content(t, filepath.Join(twice, file)) {
					t.Errorf("%s has other bytes when it is saved again", file)
				}
			}
		})
	}
}

func TestABERTWithoutAPoolerGetsTheIdentity(t *testing.T) {
	got := byName(t, filepath.Join(save(t, openModel(t, filepath.Join(tinyModel("bert"), "torchscript.onnx"))),
		"model.safetensors"))
	pooler := got["pooler.dense.weight"]
	for i, v := range pooler.Data {
		if (v == 1) != (i%11 == 0) || v != 0 && v != 1 { // [10 10]: the diagonal
			t.Fatalf("the pooler's weight is %v, want the identity", pooler.Data)
		}
	}
	if len(pooler.Data) != 100 || len(got["pooler.dense.bias"].Data) != 10 {
		t.Errorf("the pooler has %d weights and %d biases, want 100 and 10", len(pooler.Data),
			len(got["pooler.dense.bias"].Data))
	}
	for name := range byName(t, filepath.Join(save(t, openModel(t, tinyModel("distilbert"))), "model.safetensors")) {
		if strings.HasPrefix(name, "pooler.") {
			t.Errorf("a DistilBERT has %s", name)
		}
	}
}

// A copy has the values of tables that do not learn themselves: they may be most of the encoder.
func TestACopyHasNoCopiesOfFrozenTables(t *testing.T) {
	for freeze, shares := range map[string]bool{"none": false, encoders.FreezeEmbeddings: true} {
		e, params := network(t, tiny("bert"), freeze)
		var words *nn.Param
		for _, w := range params.All() {
			if strings.HasSuffix(w.Name, "word_embeddings.weight") {
				words = w
			}
		}
		if words == nil {
			t.Fatal("no table of words")
		}
		for _, tensor := range e.saved(new(nn.Copies)).tensors {
			same := strings.HasSuffix(tensor.Name, "word_embeddings.weight") && &tensor.Data[0] == &words.Data[0]
			if strings.HasSuffix(tensor.Name, "word_embeddings.weight") && same != shares {
				t.Errorf("freeze %s: the copy has the table itself: %v, want %v", freeze, !shares, shares)
			}
		}
	}
}
