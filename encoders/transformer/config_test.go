package transformer

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/safetensors"
)

func TestConfigsOfNoNetworkAreErrors(t *testing.T) {
	for want, change := range map[string]func(*config){
		"vocabulary is 0; want 1 to 16777216":   func(c *config) { c.Vocabulary = 0 },
		"width 12 is not a multiple of 5 heads": func(c *config) { c.Heads = 5 },
		"dropout is 1; want a rate in [0, 1)":   func(c *config) { c.AttentionDropout = 1 },
		"a network of this size has 4295512832 parameters; want at most 1073741824": func(c *config) {
			c.Width,
				c.Heads, c.Vocabulary = 1<<8, 1, 1<<24-8
		},
	} {
		c := tiny("bert")
		change(&c)
		if err := c.check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if c := tiny("bert"); c.check() != nil {
		t.Errorf("%+v: %v", c, c.check())
	}
}

// TestNearestLayoutsExist guards against a reason that names a layout that is not there.
func TestNearestLayoutsExist(t *testing.T) {
	for modelType, other := range unsupported {
		if findLayout(other.nearest) == nil || findLayout(modelType) != nil || other.why == "" {
			t.Errorf("%s: %+v", modelType, other)
		}
	}
}

// changedModel returns the folder of a fixture whose config.json has is in place of was.
func changedModel(t *testing.T, model, was, is string) string {
	t.Helper()
	config := content(t, filepath.Join(layoutModel(model), "config.json"))
	if !strings.Contains(config, was) {
		t.Fatalf("%s: no %s in config.json", model, was)
	}
	return folder(t, map[string]string{
		"config.json":       strings.Replace(config, was, is, 1),
		"model.safetensors": content(t, filepath.Join(layoutModel(model), "model.safetensors")),
	})
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
			"pad_token_id is 33, after which positions begin, but max_position_embeddings is 34; want a pad_token_id " +
				"from 0 to 30, which leaves 3 positions"},
		{"roberta", `"pad_token_id": 1`, `"pad_token_id": 31`, "pad_token_id is 31, after which positions begin"},
		{"roberta", `"max_position_embeddings": 34`, `"max_position_embeddings": 3`,
			"max_position_embeddings is 3; want 4 or more, 3 of them after that of pad_token_id"},
		{"electra", `"embedding_size": 11`, `"embedding_size": 18`,
			`tensor "embeddings.word_embeddings.weight" has shape [37 11]; config.json requires [37 18]`},
		{"mpnet", `"relative_attention_num_buckets": 32`, `"relative_attention_num_buckets": 16`,
			"relative_attention_num_buckets is 16; want 32 to 16777216"},
		{"mpnet", `"max_position_embeddings": 34`, `"max_position_embeddings": 4`,
			"max_position_embeddings is 4; want at least 5"},
		{"modernbert-biases", `"attention_bias": true`, `"attention_bias": false`,
			`tensor "layers.0.attn.Wo.bias" is a bias of a part that has none by config.json`},
		{"modernbert", `"mlp_bias": false`, `"mlp_bias": true`, `tensor "layers.0.mlp.Wi.bias" is missing`},
		{"modernbert", `"intermediate_size": 29`, `"intermediate_size": 30`,
			`tensor "layers.0.mlp.Wi.weight" has shape [58 18]; config.json requires [60 18]`},
		{"modernbert", `"num_attention_heads": 3`, `"num_attention_heads": 6`,
			"width 18 of 6 heads is odd for each head; rotary positions want an even number"},
		{"electra", `"embedding_size": 11`, `"embedding_size": null`,
			`tensor "embeddings.word_embeddings.weight" has shape [37 11]; want [37 128], as config.json has no ` +
				"embedding_size, whose default is 128\n"},
		{"roberta", `"hidden_size": 18`, `"num_attention_heads": 2`,
			`tensor "embeddings.word_embeddings.weight" has shape [37 18]; want [37 768], as config.json has no ` +
				"hidden_size, whose default is 768\n"},
		{"roberta", `"vocab_size": 37`, `"vocab_size": null`,
			`tensor "embeddings.word_embeddings.weight" has shape [37 18]; want [50265 18], as config.json has no ` +
				"vocab_size, whose default is 50265"},
		{"roberta", `"num_hidden_layers": 3`, `"num_hidden_layers": null`,
			"the weights have 3 layers, but config.json has no num_hidden_layers, whose default is 12; want"},
		{"modernbert", `"intermediate_size": 29`, `"intermediate_size": null`,
			`tensor "layers.0.mlp.Wi.weight" has shape [58 18]; want [2304 18], as config.json has no ` +
				"intermediate_size, whose default is 1152\n"},
		{"roberta", `"layer_norm_eps": 1e-05`, `"layer_norm_eps": "1"`,
			": layer_norm_eps is a string; want a number"},
	} {
		dir := changedModel(t, c.model, c.was, c.is)
		if got := openError(t, dir, "", encoders.Env{}); !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: error %s, want %s", c.model, c.is, got, c.want)
		}
	}
	want := "max_position_embeddings is 34, 2 of them before a text's first token, but max_length is 33"
	if got := openError(t, layoutModel("roberta"), "", encoders.Env{MaxLength: 33}); !strings.HasSuffix(got, want) {
		t.Errorf("error %s, want %s", got, want)
	}
}

// TestWeightsOfAnotherLayoutAreErrors reads weights under the prefix of another layout than model_type's.
func TestWeightsOfAnotherLayoutAreErrors(t *testing.T) {
	const three = `"roberta" or "xlm-roberta" or "camembert"`
	for _, c := range []struct{ model, modelType, prefix, layout, want string }{
		{"roberta", "bert", "roberta.", "roberta", three},
		{"roberta", "bert", "model.roberta.", "roberta", three},
		{"electra", "roberta", "electra.", "electra", `"electra"`},
		{"roberta", "electra", "bert.", "bert", `"bert"`},
		{"roberta", "distilbert", "mpnet.", "mpnet", `"mpnet"`},
		{"roberta", "modernbert", "bert.", "bert", `"bert"`},
		{"modernbert", "bert", "model.", "modernbert", `"modernbert"`},
		{"xlm-roberta", "xlm-roberta", "roberta.", "", ""},
		{"xlm-roberta", "camembert", "roberta.", "", ""},
		{"roberta", "roberta", "bert.roberta.", "", ""},
		{"roberta", "roberta", "my_bert.", "", ""},
	} {
		dir := changedModel(t, c.model, `"model_type": "`+c.model+`"`, `"model_type": "`+c.modelType+`"`)
		tensors := readTensors(t, filepath.Join(layoutModel(c.model), "model.safetensors"))
		for i := range tensors {
			tensors[i].Name = c.prefix + tensors[i].Name
		}
		writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)
		if c.want == "" {
			openModel(t, dir)
			continue
		}
		want := fmt.Sprintf("FOLDER/model.safetensors: the tensors' prefix %q is that of the layout %s, but "+
			"config.json has model_type %q; want model_type %s", findLayout(c.layout).prefix, c.layout, c.modelType,
			c.want)
		if got := openError(t, dir, "", encoders.Env{}); got != want {
			t.Errorf("the error is\n%s\nwant\n%s", got, want)
		}
	}
}

// TestAFusedTensorIsReportedOnce has the parts of queries, keys and values, or of both linear layers, in one tensor.
func TestAFusedTensorIsReportedOnce(t *testing.T) {
	path := filepath.Join(layoutModel("modernbert"), "model.safetensors")
	const attention, gated = "layers.1.attn.Wqkv.weight", "layers.1.mlp.Wi.weight" // of [54 18] and [58 18]
	for _, c := range []struct {
		change func(tensors map[string]safetensors.Tensor)
		want   string
	}{
		{func(tensors map[string]safetensors.Tensor) {
			delete(tensors, attention)
			misshapen := tensors[gated]
			misshapen.Shape = []int{29, 36}
			tensors[gated] = misshapen
		}, `FOLDER/model.safetensors: tensor "layers.1.attn.Wqkv.weight" is missing
FOLDER/model.safetensors: tensor "layers.1.mlp.Wi.weight" has shape [29 36]; config.json requires [58 18]`},
		{func(tensors map[string]safetensors.Tensor) {
			tensors[attention].Data[700] = float32(math.NaN()) // of values, which begin at 648
			tensors[gated].Data[3] = float32(math.Inf(1))
			tensors[gated].Data[1043] = float32(math.NaN())
		}, `FOLDER/model.safetensors: tensor "layers.1.attn.Wqkv.weight" holds NaN as value 700 of 972
FOLDER/model.safetensors: tensor "layers.1.mlp.Wi.weight" holds +Inf as value 3 of 1044`},
	} {
		tensors := map[string]safetensors.Tensor{}
		for _, tensor := range readTensors(t, path) {
			tensors[tensor.Name] = tensor
		}
		c.change(tensors)
		dir := folder(t, map[string]string{
			"config.json": content(t, filepath.Join(layoutModel("modernbert"), "config.json")),
		})
		writeTensors(t, filepath.Join(dir, "model.safetensors"), slices.Collect(maps.Values(tensors)))
		if got := openError(t, dir, "", encoders.Env{}); got != c.want {
			t.Errorf("the error is\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestDistilBERTsSizesHaveTwoNames reads the names of transformers' attribute_map.
func TestDistilBERTsSizesHaveTwoNames(t *testing.T) {
	for _, c := range []struct {
		keys                 string
		width, layers, heads int
		error                string
	}{
		{``, 768, 6, 12, ""},
		{`, "num_attention_heads": 8`, 768, 6, 8, ""},
		{`, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 3`, 96, 2, 3, ""},
		{`, "dim": 96, "hidden_size": 96, "n_layers": null, "num_hidden_layers": 2`, 96, 2, 12, ""},
		{`, "n_heads": 12, "num_attention_heads": 8`, 0, 0, 0,
			"n_heads is 12, but num_attention_heads, which means the same, is 8; want one of them"},
		{`, "hidden_size": 10, "num_attention_heads": 3`, 0, 0, 0,
			"hidden_size 10 is not a multiple of num_attention_heads 3"},
		{`, "num_hidden_layers": 0`, 0, 0, 0, "num_hidden_layers is 0; want 1 to 1024"},
	} {
		dir := folder(t, map[string]string{"config.json": `{"model_type": "distilbert"` + c.keys + "}"})
		got, _, err := readConfig(filepath.Join(dir, "config.json"))
		if c.error != "" {
			if err == nil || !strings.HasSuffix(err.Error(), "config.json: "+c.error) {
				t.Errorf("%s: error %v, want %s", c.keys, err, c.error)
			}
			continue
		}
		if err != nil || got.Width != c.width || got.Layers != c.layers || got.Heads != c.heads {
			t.Errorf("%s: %+v, %v, want %+v", c.keys, got, err, c)
		}
	}
}

// FuzzReadConfig reads config.json files of all layouts: no content makes it panic.
func FuzzReadConfig(f *testing.F) {
	for _, l := range layouts {
		f.Add(`{"model_type": "` + l.name + `"}`)
	}
	f.Add(`{"model_type": "modernbert", "num_hidden_layers": 2, "layer_types": ["full_attention", "x"]}`)
	f.Add(`{"model_type": "modernbert", "rope_parameters": {"full_attention": null, "x": 1}, "sliding_window": 5}`)
	f.Add(`{"model_type": "distilbert", "hidden_size": 24, "dim": null}`)
	f.Fuzz(func(t *testing.T, config string) {
		dir := folder(t, map[string]string{"config.json": config})
		if c, _, err := readConfig(filepath.Join(dir, "config.json")); err == nil {
			parametersOf(c)
		}
	})
}
