package transformer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
)

// TestNearestLayoutsExist guards against a reason that names a layout that is not there.
func TestNearestLayoutsExist(t *testing.T) {
	for modelType, other := range unsupported {
		if findLayout(other.nearest) == nil || findLayout(modelType) != nil || other.why == "" {
			t.Errorf("%s: %+v", modelType, other)
		}
	}
}

func TestConfigsThatContradictTheWeightsAreErrors(t *testing.T) {
	for _, c := range []struct{ model, was, is, want string }{
		{"roberta", `"num_hidden_layers": 3`, `"num_hidden_layers": 2`,
			"the weights have 3 layers, but config.json has 2; want the config.json of these weights"},
		{"roberta", `"num_hidden_layers": 3`, `"num_hidden_layers": 4`,
			"the weights have 3 layers, but config.json has 4; want the config.json of these weights"},
		{"roberta", `"type_vocab_size": 1`, `"type_vocab_size": 2`,
			`tensor "embeddings.token_type_embeddings.weight" has shape [1 18]; config.json requires [2 18]`},
		{"roberta", `"pad_token_id": 1`, `"pad_token_id": 33`,
			"pad_token_id is 33, after which positions begin; want a number from 0 to max_position_embeddings - 2, 32"},
		{"electra", `"embedding_size": 11`, `"embedding_size": 18`,
			`tensor "embeddings.word_embeddings.weight" has shape [37 11]; config.json requires [37 18]`},
		{"mpnet", `"relative_attention_num_buckets": 32`, `"relative_attention_num_buckets": 16`,
			"relative_attention_num_buckets is 16; want 32 to 16777216"},
		{"modernbert-biases", `"attention_bias": true`, `"attention_bias": false`,
			`tensor "layers.0.attn.Wo.bias" is a bias of a part that has none by config.json`},
		{"modernbert", `"mlp_bias": false`, `"mlp_bias": true`, `tensor "layers.0.mlp.Wi.bias" is missing`},
		{"modernbert", `"intermediate_size": 29`, `"intermediate_size": 30`,
			`tensor "layers.0.mlp.Wi.weight" has shape [58 18]; config.json requires [60 18]`},
		{"modernbert", `"num_attention_heads": 3`, `"num_attention_heads": 6`,
			"width 18 of 6 heads is odd for each head; rotary positions want an even number"},
	} {
		config := content(t, filepath.Join(layoutModel(c.model), "config.json"))
		changed := strings.Replace(config, c.was, c.is, 1)
		if changed == config {
			t.Fatalf("%s: no %s in config.json", c.model, c.was)
		}
		dir := folder(t, map[string]string{
			"config.json":       changed,
			"model.safetensors": content(t, filepath.Join(layoutModel(c.model), "model.safetensors")),
		})
		if got := openError(t, dir, "", encoders.Env{}); !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: error %s, want %s", c.model, c.is, got, c.want)
		}
	}
	want := "max_position_embeddings is 34, 2 of them before a text's first token, but max_length is 33"
	if got := openError(t, layoutModel("roberta"), "", encoders.Env{MaxLength: 33}); !strings.HasSuffix(got, want) {
		t.Errorf("error %s, want %s", got, want)
	}
}

// FuzzReadConfig reads config.json files of all layouts: no content makes it panic.
func FuzzReadConfig(f *testing.F) {
	for _, l := range layouts {
		f.Add(`{"model_type": "` + l.name + `"}`)
	}
	f.Add(`{"model_type": "modernbert", "num_hidden_layers": 2, "layer_types": ["full_attention", "x"]}`)
	f.Fuzz(func(t *testing.T, config string) {
		dir := folder(t, map[string]string{"config.json": config})
		if c, _, err := readConfig(filepath.Join(dir, "config.json")); err == nil {
			c.parameters()
		}
	})
}
