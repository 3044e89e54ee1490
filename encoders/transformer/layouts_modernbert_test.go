package transformer

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// TestLongTextsOfModernBERT compares the sums of the last states of a text of 1,024 tokens with PyTorch's: the first
// network has windows of 9 tokens, the second of 201.
func TestLongTextsOfModernBERT(t *testing.T) {
	for _, name := range []string{"modernbert", "modernbert-biases"} {
		want := computedByPyTorch(t, name)("long")
		e := openModel(t, layoutModel(name))
		states := encode(t, e, nn.NewPass(1), pack(layoutText(5, 1024)), nn.LastLayer)[0]
		var worst float64
		for i, sum := range want {
			var got float64
			for _, v := range states[i*e.config.Width:][:e.config.Width] {
				got += float64(v)
			}
			worst = max(worst, difference(got, float64(sum))/math.Sqrt(float64(e.config.Width)))
		}
		if !(worst <= 1e-5) {
			t.Errorf("%s: a state is %v from PyTorch's, want at most 1e-5", name, worst)
		}
		t.Logf("%s: %.2g", name, worst)
	}
}

// TestModernBERTsConfigOfTransformers4 reads the keys that transformers 4 writes.
func TestModernBERTsConfigOfTransformers4(t *testing.T) {
	const sizes = `"model_type": "modernbert", "vocab_size": 37, "hidden_size": 18, "num_hidden_layers": 4, ` +
		`"num_attention_heads": 3, "intermediate_size": 29, "max_position_embeddings": 2048, "local_attention": 8, `
	want := openModel(t, layoutModel("modernbert")).config
	want.InitializerRange = 0 // of a config.json
	read := func(keys string) (config, error) {
		dir := folder(t, map[string]string{"config.json": "{" + sizes + keys + "}"})
		c, _, err := readConfig(filepath.Join(dir, "config.json"))
		return c, err
	}
	for _, c := range []struct {
		keys          string
		global, local float64
		error         string
	}{
		{`"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, ` +
			`"classifier_pooling": "mean", "deterministic_flash_attn": false`, 160000, 10000, ""},
		{`"global_rope_theta": 80000, "local_rope_theta": null`, 80000, 80000, ""},
		{`"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1e4}}`, 0, 0,
			`rope_type "yarn" is not supported; "default" is`},
		{`"layer_types": ["full_attention"]`, 0, 0, "layer_types lists 1 layers, but num_hidden_layers is 4"},
		{`"layer_types": ["full_attention", "x", "x", "x"]`, 0, 0,
			`layer_types: layer 1 is "x"; want "full_attention" or "sliding_attention"`},
		{`"hidden_activation": "silu"`, 0, 0, `hidden_activation "silu" is not supported; "gelu" is`},
		{`"local_attention": 1`, 0, 0, "local_attention is 1; want 2 to 16777216"},
		{`"global_rope_theta": -1`, 0, 0, "global_rope_theta is -1; want a number from 1 to 1e12"},
	} {
		got, err := read(c.keys)
		if c.error != "" {
			if err == nil || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%s: error %v, want %s", c.keys, err, c.error)
			}
			continue
		}
		want.GlobalBase, want.LocalBase = c.global, c.local
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", c.keys, got, err, want)
		}
	}
}

func TestModernBERTsRotaryPositionsAndWindows(t *testing.T) {
	const global, local = `"rope_parameters": {"full_attention": `, `"rope_parameters": {"sliding_attention": `
	const nested = `; want the keys full_attention and sliding_attention, each with rope_type and rope_theta`
	for _, c := range []struct {
		keys          string
		global, local float64
		window        int
		error         string
	}{
		{global + `{"type": "default", "rope_theta": 80000}}`, 80000, 10000, 64, ""},
		{global + `{"rope_type": null, "rope_theta": null}}`, 160000, 10000, 64, ""},
		{global + `{"rope_type": "default", "type": "yarn"}}`, 0, 0, 0,
			`rope_parameters.full_attention.type "yarn" is not supported; "default" is`},
		{local + `{"type": "linear", "factor": 2}}`, 0, 0, 0,
			`rope_parameters.sliding_attention.type "linear" is not supported; "default" is`},
		{local + `{"rope_type": "yarn"}}`, 0, 0, 0,
			`rope_parameters.sliding_attention.rope_type "yarn" is not supported; "default" is`},
		{`"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}`, 0, 0, 0,
			"rope_parameters has rope_theta, rope_type" + nested},
		{global + `{}, "factor": 8}`, 0, 0, 0, "rope_parameters has factor" + nested},
		{global + `{"rope_theta": 0}}`, 0, 0, 0,
			"rope_parameters.full_attention.rope_theta is 0; want a number from 1 to 1e12, such as 10000"},
		{local + `{"rope_theta": -5}}`, 0, 0, 0,
			"rope_parameters.sliding_attention.rope_theta is -5; want a number from 1 to 1e12, such as 10000"},
		{`"local_rope_theta": 0`, 0, 0, 0, "local_rope_theta is 0; want a number from 1 to 1e12, such as 10000"},
		{`"global_rope_theta": 0, "local_rope_theta": null`, 0, 0, 0, "config.json: global_rope_theta is 0; want"},
		{`"sliding_window": 5`, 160000, 10000, 5, ""},
		{`"local_attention": 11, "sliding_window": 5`, 160000, 10000, 5, ""},
		{`"local_attention": 11, "sliding_window": null`, 160000, 10000, 5, ""},
		{`"local_attention": 128, "sliding_window": 128`, 0, 0, 0,
			"sliding_window is 128, but local_attention is 128; want a local_attention of twice sliding_window"},
		{`"sliding_window": 0`, 0, 0, 0, "sliding_window is 0; want 1 to 8388608"},
	} {
		dir := folder(t, map[string]string{"config.json": `{"model_type": "modernbert", ` + c.keys + "}"})
		got, _, err := readConfig(filepath.Join(dir, "config.json"))
		if c.error != "" {
			if err == nil || !strings.Contains(err.Error(), c.error) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v, want %s", c.keys, err, c.error)
			}
			continue
		}
		if err != nil || got.GlobalBase != c.global || got.LocalBase != c.local || got.Window != c.window {
			t.Errorf("%s: %+v, %v, want %+v", c.keys, got, err, c)
		}
	}
}

func TestLocalLayersHaveMapsOfTheirWindows(t *testing.T) {
	c := tiny("modernbert")
	e, _ := network(t, c, "none")
	p := nn.NewPass(1)
	const n = 9
	for layer := range c.Layers {
		p.Observe(nn.AttentionMaps(layer), func(_ int, _ []int, maps []float32) {
			for i, w := range maps {
				query, key := i/n%n, i%n
				if seen := layer == 0 || max(query-key, key-query) <= c.Window; seen != (w > 0) {
					t.Fatalf("layer %d: the weight of query %d for key %d is %v", layer, query, key, w)
				}
			}
		})
	}
	encode(t, e, p, pack([]int32{3, 17, 5, 17, 29, 8, 2, 1, 6}), nn.LastLayer)
}

func TestParametersOfModernBERT(t *testing.T) {
	c := tiny("modernbert")
	params := nn.NewParams(1)
	if _, err := newEncoder(c, encoders.Env{Params: params.In("encoder")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range params.All() {
		got = append(got, fmt.Sprint(strings.TrimPrefix(w.Name, "encoder."), w.Shape))
	}
	want := strings.Split(`embeddings.word_embeddings.weight[30 12]
embeddings.LayerNorm.weight[12]
encoder.layer.0.attention.self.query.weight[12 12]
encoder.layer.0.attention.self.key.weight[12 12]
encoder.layer.0.attention.self.value.weight[12 12]
encoder.layer.0.attention.output.dense.weight[12 12]
encoder.layer.0.intermediate.LayerNorm.weight[12]
encoder.layer.0.intermediate.dense.weight[12 20]
encoder.layer.0.intermediate.gate.weight[12 20]
encoder.layer.0.output.dense.weight[20 12]
encoder.layer.1.attention.LayerNorm.weight[12]
encoder.layer.1.attention.self.query.weight[12 12]
encoder.layer.1.attention.self.key.weight[12 12]
encoder.layer.1.attention.self.value.weight[12 12]
encoder.layer.1.attention.output.dense.weight[12 12]
encoder.layer.1.intermediate.LayerNorm.weight[12]
encoder.layer.1.intermediate.dense.weight[12 20]
encoder.layer.1.intermediate.gate.weight[12 20]
encoder.layer.1.output.dense.weight[20 12]
encoder.LayerNorm.weight[12]`, "\n")
	if !slices.Equal(got, want) {
		t.Errorf("parameters are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
