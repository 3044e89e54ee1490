package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
)

// choose opens layers of a model.
func choose(path string, layers ...int) (*encoder, error) {
	e, err := New(Options{}, encoders.Env{Model: path, Layers: layers, Params: nn.NewParams(1).In("encoder")})
	if err != nil {
		return nil, err
	}
	return e.(*encoder), nil
}

func mustChoose(t *testing.T, path string, layers ...int) *encoder {
	t.Helper()
	e, err := choose(path, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// chain returns a model's encoder whose layers are exchanged for some of them, after it was opened whole.
func chain(t *testing.T, path string, layers ...int) *encoder {
	t.Helper()
	e := openModel(t, path)
	blocks, levels := e.blocks, e.levels
	e.blocks, e.levels = nil, levels[:1:1]
	for _, i := range layers {
		e.blocks, e.levels = append(e.blocks, blocks[i]), append(e.levels, levels[i+1])
	}
	e.config.Layers = len(layers)
	return e
}

// checkChosen compares layers of a model with their chain, as they are and as they are opened from what they save.
func checkChosen(t *testing.T, path string, layers ...int) {
	t.Helper()
	e := mustChoose(t, path, layers...)
	tokens := stateTexts(stateLengths[:5], min(37, e.config.Vocabulary))
	want := encode(t, chain(t, path, layers...), nn.NewPass(1), tokens, nn.AllLayers)
	saved := save(t, e)
	for name, student := range map[string]*encoder{"chosen": e, "saved": openModel(t, saved)} {
		got := encode(t, student, nn.NewPass(1), tokens, nn.AllLayers)
		if len(got) != len(layers)+1 || len(student.Describe().Levels) != len(layers)+1 {
			t.Fatalf("%v, %s: %d states, want %d", layers, name, len(got), len(layers)+1)
		}
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%v, %s: states of layer %d are not those of the model's layers", layers, name, i)
			}
		}
	}

	// what transformers would open
	var keys map[string]any
	if err := json.Unmarshal([]byte(content(t, filepath.Join(saved, "config.json"))), &keys); err != nil {
		t.Fatal(err)
	}
	number := keys["num_hidden_layers"]
	if number == nil {
		number = keys["n_layers"]
	}
	if fmt.Sprint(number) != fmt.Sprint(len(layers)) {
		t.Errorf("%v: config.json has %v layers", layers, number)
	}
	for name := range byName(t, filepath.Join(saved, "model.safetensors")) {
		if i, ok := e.config.layerOf(name, e.source.prefix); ok && i >= len(layers) {
			t.Errorf("%v: the saved encoder has a tensor %q", layers, name)
		}
	}
}

func TestLayersOfAModelAreTheModels(t *testing.T) {
	models := []string{tinyModel("bert"), tinyModel("distilbert")}
	for _, name := range fixtureNames {
		models = append(models, layoutModel(name))
	}
	for _, path := range models {
		t.Run(filepath.Base(path), func(t *testing.T) {
			whole := openModel(t, path)
			var all []int
			for i := range whole.config.Layers {
				all = append(all, i)
			}
			checkChosen(t, path, all...)
			checkChosen(t, path, 0)
			checkChosen(t, path, 0, len(all)-1)
			if !whole.config.layout.preNorm() {
				checkChosen(t, path, len(all)-1, 0)
				checkChosen(t, path, 1)
			}

			same := mustChoose(t, path, all...)
			equalParameters(t, same, whole)
			got, want := byName(t, filepath.Join(save(t, same), "model.safetensors")),
				byName(t, filepath.Join(save(t, whole), "model.safetensors"))
			if len(got) != len(want) {
				t.Errorf("all layers are saved as %d tensors, the model as %d", len(got), len(want))
			}
			for name := range want {
				equalTensors(t, name, got[name], want[name])
			}
		})
	}
}

func TestLayersOfPublishedModels(t *testing.T) {
	for _, name := range []string{"minilm-l6", "distil-l6"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(shared.Dir(t), "models", name)
			checkChosen(t, path, 0, 2, 5)
			checkChosen(t, path, 0, 1, 2, 3, 4, 5)
		})
	}
	t.Run("of an ONNX graph", func(t *testing.T) {
		path := filepath.Join(shared.Dir(t), "models", "distil-l6")
		got := evaluate(t, mustChoose(t, filepath.Join(path, "model.onnx"), 0, 2, 5), pack([]int32{101, 2054, 102}))
		if want := evaluate(t, chain(t, filepath.Join(path, "model.onnx"), 0, 2, 5),
			pack([]int32{101, 2054, 102})); !slices.Equal(got, want) {
			t.Error("states are not those of the graph's layers")
		}
	})
}

// Layers that are frozen by their number are those of the encoder, not of the model.
func TestLayersAreCountedInTheEncoder(t *testing.T) {
	open := func(freeze string) (encoders.Encoder, error) {
		return New(Options{}, encoders.Env{Model: layoutModel("roberta"), Layers: []int{0, 2}, Freeze: freeze,
			Params: nn.NewParams(1).In("encoder")})
	}
	e, err := open("1")
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range e.Describe().Levels {
		for _, w := range level {
			if w.Frozen != (i < 2) {
				t.Errorf("freeze: 1: %s is frozen: %v", w.Name, w.Frozen)
			}
		}
	}
	if _, err := open("3"); err == nil || !strings.Contains(err.Error(), "a number of layers from 0 to 2") {
		t.Errorf("freeze: 3 of two layers: %v", err)
	}
	whole := openModel(t, layoutModel("roberta")).Describe().Memory(encoders.Workload{Tokens: 100, Training: true})
	if got := e.Describe().Memory(encoders.Workload{Tokens: 100, Training: true}); got >= whole {
		t.Errorf("2 of 3 layers are estimated to take %d bytes, all %d", got, whole)
	}
}

func TestLayersThatAModelLacksAreErrors(t *testing.T) {
	for _, c := range []struct {
		model  string
		layers []int
		want   string
	}{
		{layoutModel("roberta"), []int{0, 3}, "encoder: layers: there is no layer 3: the model has 3 layers, " +
			"numbered from 0 to 2"},
		{layoutModel("roberta"), []int{0, 1, 2, 0}, "encoder: layers: 4 layers are listed: the model has 3"},
		{layoutModel("roberta"), []int{-1}, "there is no layer -1"},
		{layoutModel("modernbert"), []int{1, 2}, "layer 1 of the model has other parts than a modernbert encoder has " +
			"in layer 0: want layer 0 first"},
		{layoutModel("modernbert"), []int{1, 0}, "layer 1 of the model has other parts"},
	} {
		_, err := choose(c.model, c.layers...)
		var option *encoders.OptionError
		if !errors.As(err, &option) || option.Key != "encoder.layers" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v: %v, want %s", c.model, c.layers, err, c.want)
		}
	}

	path := filepath.Join(t.TempDir(), "int8")
	if err := openModel(t, tinyModel("bert")).quantized("")(path); err != nil {
		t.Fatal(err)
	}
	if _, err := choose(path, 0); !errors.Is(err, encoders.ErrQuantized) {
		t.Errorf("a layer of a quantized model: %v", err)
	}
	if err := os.Remove(filepath.Join(path, "config.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := choose(path, 0); err == nil || !strings.Contains(err.Error(), "config.json not found") {
		t.Errorf("without config.json: %v", err)
	}
}
