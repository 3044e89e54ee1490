package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// tinyLengths are the lengths of the texts of scripts/fixtures/states_onnx.py.
var tinyLengths = []int{1, 2, 5, 11}

// tinyModel returns a folder that script writes.
func tinyModel(name string) string { return filepath.Join("testdata", "states", name) }

// folder makes a folder of files, to whose names their content belongs.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// content reads a file.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// readTensors reads all of a safetensors file, float32 values as Data.
func readTensors(t *testing.T, path string) []safetensors.Tensor {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tensors []safetensors.Tensor
	for _, info := range f.Tensors() {
		tensor := safetensors.Tensor{Name: info.Name, Shape: info.Shape, DType: info.DType}
		if info.DType == "F32" {
			tensor.Data, err = f.Floats(info.Name)
		} else {
			tensor.Raw, err = f.Raw(info.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, tensor)
	}
	return tensors
}

func writeTensors(t *testing.T, path string, tensors []safetensors.Tensor) {
	t.Helper()
	if err := safetensors.Write(path, tensors, nil); err != nil {
		t.Fatal(err)
	}
}

// equalParameters reports whether two encoders have the same bits.
func equalParameters(t *testing.T, got, want *encoder) {
	t.Helper()
	a, b := got.params.All(), want.params.All()
	if len(a) != len(b) {
		t.Fatalf("%d parameters, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i].Name != b[i].Name || !slices.Equal(a[i].Data, b[i].Data) {
			t.Errorf("parameter %s differs from %s", a[i].Name, b[i].Name)
		}
	}
}

func TestATinyModelsStatesAreThoseOfTransformersFromEveryFile(t *testing.T) {
	for _, name := range []string{"bert", "distilbert", "fresh"} {
		fromTensors := openModel(t, tinyModel(name))
		for _, file := range []string{".", "torchscript.onnx", "dynamo.onnx"} {
			t.Run(name+" "+file, func(t *testing.T) {
				e := openModel(t, filepath.Join(tinyModel(name), file))
				equalParameters(t, e, fromTensors)

				got := evaluate(t, e, stateTexts(tinyLengths, e.config.Vocabulary))
				want := decodeStates(t, filepath.Join(tinyModel(name), "states.bin"))
				if len(got) != len(want) {
					t.Fatalf("%d states, want %d", len(got), len(want))
				}
				for i := range want {
					if d := difference(float64(got[i]), float64(want[i])); d > 1e-5 {
						t.Fatalf("state %d is %v, want %v", i, got[i], want[i])
					}
				}
			})
		}
	}
}

func decodeStates(t *testing.T, path string) []float32 {
	data := content(t, path)
	states := make([]float32, len(data)/4)
	safetensors.Decode(states, []byte(data), "F32")
	return states
}

func TestAModelReadsTheSameInEveryForm(t *testing.T) {
	for _, name := range []string{"bert", "distilbert"} {
		want := openModel(t, tinyModel(name))
		config := content(t, filepath.Join(tinyModel(name), "config.json"))
		tensors := readTensors(t, filepath.Join(tinyModel(name), "model.safetensors"))
		renamed := func(rename func(string) string) []safetensors.Tensor {
			all := slices.Clone(tensors)
			for i := range all {
				all[i].Name = rename(all[i].Name)
			}
			return all
		}

		for _, prefix := range []string{name + ".", "model."} {
			t.Run(name+" under "+prefix, func(t *testing.T) {
				dir := folder(t, map[string]string{"config.json": config})
				writeTensors(t, filepath.Join(dir, "model.safetensors"),
					renamed(func(n string) string { return prefix + n }))
				equalParameters(t, openModel(t, dir), want)
			})
		}
		t.Run(name+" with old names", func(t *testing.T) {
			dir := folder(t, map[string]string{"config.json": config})
			writeTensors(t, filepath.Join(dir, "model.safetensors"), renamed(oldName))
			if !strings.Contains(content(t, filepath.Join(dir, "model.safetensors")), "LayerNorm.gamma") {
				t.Error("the file has no old names")
			}
			equalParameters(t, openModel(t, dir), want)
		})
		t.Run(name+" in shards", func(t *testing.T) {
			index := map[string]map[string]string{"weight_map": {}}
			for i, tensor := range tensors {
				index["weight_map"][tensor.Name] = fmt.Sprintf("model-%d.safetensors", i%3)
			}
			data, _ := json.Marshal(index)
			dir := folder(t, map[string]string{"config.json": config, "model.safetensors.index.json": string(data)})
			for shard := range 3 {
				var some []safetensors.Tensor
				for i := shard; i < len(tensors); i += 3 {
					some = append(some, tensors[i])
				}
				writeTensors(t, filepath.Join(dir, fmt.Sprintf("model-%d.safetensors", shard)), some)
			}
			got := openModel(t, dir)
			equalParameters(t, got, want)
			var read []string
			for _, path := range got.Describe().Files {
				read = append(read, filepath.Base(path))
			}
			if want := "[config.json model.safetensors.index.json model-0.safetensors model-1.safetensors " +
				"model-2.safetensors]"; fmt.Sprint(read) != want {
				t.Errorf("Files() = %v, want %s", read, want)
			}
		})
		t.Run(name+" from a folder with an ONNX file alone", func(t *testing.T) {
			dir := folder(t, map[string]string{
				"config.json": config, "vocab.txt": "",
				"model.onnx": content(t, filepath.Join(tinyModel(name), "torchscript.onnx"))})
			equalParameters(t, openModel(t, dir), want)
		})
		t.Run(name+" in bfloat16", func(t *testing.T) {
			dir := folder(t, map[string]string{"config.json": config})
			cut := make([]safetensors.Tensor, len(tensors))
			for i, tensor := range tensors {
				cut[i] = safetensors.Tensor{Name: tensor.Name, Shape: tensor.Shape, DType: "BF16"}
				for _, v := range tensor.Data {
					upper := math.Float32bits(v) >> 16
					cut[i].Raw = append(cut[i].Raw, byte(upper), byte(upper>>8))
				}
			}
			writeTensors(t, filepath.Join(dir, "model.safetensors"), cut)
			got := openModel(t, dir).params.All()
			for i, w := range want.params.All() {
				for j, v := range w.Data {
					if cut := math.Float32frombits(math.Float32bits(v) &^ 0xffff); got[i].Data[j] != cut {
						t.Fatalf("%s has %v as value %d, want %v", w.Name, got[i].Data[j], j, cut)
					}
				}
			}
		})
	}
}

func TestTheExperimentOverrulesTheConfig(t *testing.T) {
	open := func(env encoders.Env) config {
		t.Helper()
		env.Model, env.Params = tinyModel("distilbert"), nn.NewParams(1)
		e, err := New(Options{}, env)
		if err != nil {
			t.Fatal(err)
		}
		return e.(*encoder).config
	}
	if c := open(encoders.Env{Dropout: 0.3}); c.Dropout != 0.1 || c.AttentionDropout != 0.1 {
		t.Errorf("without a dropout in the experiment, dropouts are %v and %v, want config.json's 0.1", c.Dropout,
			c.AttentionDropout)
	}
	if c := open(encoders.Env{Dropout: 0.3, DropoutSet: true}); c.Dropout != 0.3 || c.AttentionDropout != 0.3 {
		t.Errorf("with dropout 0.3 in the experiment, dropouts are %v and %v", c.Dropout, c.AttentionDropout)
	}
}

// openError returns the error of opening a model, with FOLDER for the folder's path.
func openError(t *testing.T, dir, file string, env encoders.Env) string {
	t.Helper()
	env.Model, env.Params = filepath.Join(dir, file), nn.NewParams(1)
	_, err := New(Options{}, env)
	if err == nil {
		t.Fatal("no error")
	}
	return strings.ReplaceAll(err.Error(), dir, "FOLDER")
}

func TestAConfigThatIsNotReadIsAnErrorThatSaysWhatIs(t *testing.T) {
	const bert = `"model_type": "bert", "vocab_size": 30, "hidden_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2, `
	tests := []struct{ name, config, want string }{
		{"no JSON", "{\n\n\"a\"", "FOLDER/config.json:3: not JSON: unexpected end of JSON input"},
		{"a list", `[]`, "FOLDER/config.json: it holds a JSON array; want an object"},
		{"no type", `{}`, `FOLDER/config.json: no model_type; supported: ` + layoutNames()},
		{"another type", `{"model_type": "deberta-v2"}`,
			`FOLDER/config.json: model_type "deberta-v2" is not supported; the nearest layout is roberta, but its ` +
				"attention is disentangled: products of content and relative position. Supported: " +
				layoutNames() + ". Exported to ONNX, another encoder can be used frozen, by encoder: {type: hugot}"},
		{"a type with a decoder", `{"model_type": "t5"}`, `FOLDER/config.json: model_type "t5" is not supported; ` +
			"the nearest layout is mpnet, but it has a decoder"},
		{"a misspelt type", `{"model_type": "modern_bert"}`,
			`FOLDER/config.json: model_type "modern_bert" is not supported; did you mean "modernbert"? Supported: `},
		{"type that is no string", "{\n\"model_type\": 3}",
			"FOLDER/config.json:2: model_type is a number; want a string"},
		{"size that is no number", "{\"model_type\": \"bert\",\n\"hidden_size\": \"10\"}",
			"FOLDER/config.json:2: hidden_size is a string; want a whole number"},
		{"dropout that is no number", `{"model_type": "bert", "hidden_dropout_prob": true}`,
			"FOLDER/config.json:1: hidden_dropout_prob is a bool; want a number"},
		{"flag that is none", `{"model_type": "bert", "is_decoder": 1}`,
			"FOLDER/config.json:1: is_decoder is a number; want true or false"},
		{"activation", `{` + bert + `"hidden_act": "gelu_new"}`,
			`FOLDER/config.json: hidden_act "gelu_new" is not supported; "gelu" is`},
		{"DistilBERT's activation", `{"model_type": "distilbert", "activation": "relu"}`,
			`FOLDER/config.json: activation "relu" is not supported; "gelu" is`},
		{"positions", `{` + bert + `"position_embedding_type": "relative_key"}`,
			`FOLDER/config.json: position_embedding_type "relative_key" is not supported; "absolute" is`},
		{"fixed positions", `{"model_type": "distilbert", "sinusoidal_pos_embds": true}`,
			`FOLDER/config.json: sinusoidal_pos_embds: fixed positions are not supported; learned ones are`},
		{"decoder", `{` + bert + `"is_decoder": true}`,
			"FOLDER/config.json: is_decoder: decoders are not supported; the model must be an encoder"},
		{"heads", `{"model_type": "distilbert", "dim": 10, "n_heads": 3}`,
			"FOLDER/config.json: dim 10 is not a multiple of n_heads 3"},
		{"dropout", `{` + bert + `"hidden_dropout_prob": 1}`,
			"FOLDER/config.json: hidden_dropout_prob is 1; want a rate in [0, 1)"},
		{"epsilon", `{` + bert + `"layer_norm_eps": 0}`,
			"FOLDER/config.json: layer_norm_eps is 0; want a number above 0"},
		{"token types", `{` + bert + `"type_vocab_size": 129}`,
			"FOLDER/config.json: type_vocab_size is 129; want 1 to 128"},
		{"several at once", `{` + bert + `"vocab_size": -1, "num_hidden_layers": 2000000000, "hidden_act": "silu"}`,
			"FOLDER/config.json: vocab_size is -1; want 1 to 16777216\n" +
				"FOLDER/config.json: num_hidden_layers is 2000000000; want 1 to 1024\n" +
				`FOLDER/config.json: hidden_act "silu" is not supported; "gelu" is`},
		{"too large", `{` + bert + `"vocab_size": 16777216, "hidden_size": 16777216}`,
			"FOLDER/config.json: a network of this size has"},
		{"fewer tokens than the tokenizer's", content(t, filepath.Join(tinyModel("bert"), "config.json")),
			"FOLDER/config.json: vocab_size is 30, but the tokenizer has 31 tokens"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"config.json": test.config})
			writeTensors(t, filepath.Join(dir, "model.safetensors"), nil)
			if got := openError(t, dir, "", encoders.Env{Vocabulary: 31}); !strings.HasPrefix(got, test.want) {
				t.Errorf("the error is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
	t.Run("texts too long", func(t *testing.T) {
		want := "max_position_embeddings is 12, but max_length is 13"
		if got := openError(t, tinyModel("bert"), "", encoders.Env{MaxLength: 13}); !strings.HasSuffix(got, want) {
			t.Errorf("the error is\n%s\nwant\n%s", got, want)
		}

		_, err := New(Options{}, encoders.Env{Model: tinyModel("bert"), MaxLength: 13, Params: nn.NewParams(1)})
		var length *encoders.LengthError
		if !errors.As(err, &length) || *length != (encoders.LengthError{Max: 12, Length: 13}) {
			t.Errorf("the error %v is no LengthError of 12 and 13 tokens", err)
		}
	})
}

func TestFilesThatHoldNoModelAreAnErrorThatSaysWhatIsWrong(t *testing.T) {
	config := content(t, filepath.Join(tinyModel("bert"), "config.json"))
	graph := content(t, filepath.Join(tinyModel("bert"), "torchscript.onnx"))
	index := func(shard string) string {
		return fmt.Sprintf(`{"weight_map": {"embeddings.LayerNorm.bias": %q}}`, shard)
	}
	tests := []struct {
		name       string
		files      map[string]string
		open, want string
	}{
		{"no such folder", nil, "x", "stat FOLDER/x: no such file or directory"},
		{"no folder", map[string]string{"model.safetensors": ""}, "model.safetensors",
			"FOLDER/model.safetensors: not a folder and not an .onnx file; want the folder that holds config.json and " +
				"model.safetensors"},
		{"no config", map[string]string{"model.safetensors": ""}, "",
			"FOLDER: config.json not found, which describes the weights"},
		{"no weights", map[string]string{"config.json": config}, "",
			"FOLDER: no weights; want model.safetensors, model.safetensors.index.json or model.onnx"},
		{"a pickle", map[string]string{"config.json": config, "pytorch_model.bin": ""}, "",
			"FOLDER/pytorch_model.bin: a pickle, which is not read because it can run code; in Python, " +
				`transformers' AutoModel.from_pretrained("FOLDER").save_pretrained("FOLDER") writes a model.safetensors`},
		{"pickles", map[string]string{"config.json": config, "pytorch_model.bin.index.json": ""}, "",
			"FOLDER/pytorch_model.bin.index.json: a pickle, which is not read because it can run code"},
		{"truncated", map[string]string{"config.json": config,
			"model.safetensors": "\x08\x00\x00\x00\x00\x00\x00\x00{"}, "",
			"FOLDER/model.safetensors: truncated, or not a safetensors file: its header claims 8 bytes, 1 follow"},
		{"index that is no JSON", map[string]string{"config.json": config, "model.safetensors.index.json": "{\n"}, "",
			"FOLDER/model.safetensors.index.json:2: not JSON: unexpected end of JSON input"},
		{"index of a file elsewhere", map[string]string{"config.json": config,
			"model.safetensors.index.json": index("../a")}, "",
			`FOLDER/model.safetensors.index.json: weight_map names "../a"; want the name of a file beside the index`},
		{"index of a missing file", map[string]string{"config.json": config,
			"model.safetensors.index.json": index("a")}, "",
			"FOLDER/model.safetensors.index.json: " +
				`weight_map names "a", which is not beside it; download that too`},
		{"index of a missing tensor", map[string]string{"config.json": config,
			"model.safetensors.index.json": index("a"), "a": "\x02\x00\x00\x00\x00\x00\x00\x00{}"}, "",
			`FOLDER/model.safetensors.index.json: tensor "embeddings.LayerNorm.bias" is not in a, where weight_map has it`},
		{"ONNX without config", map[string]string{"model.onnx": graph, "vocab.txt": ""}, "model.onnx",
			"FOLDER: config.json not found, which describes the weights"},
		{"ONNX without tokenizer", map[string]string{"model.onnx": graph, "config.json": config}, "model.onnx",
			"FOLDER/model.onnx: no tokenizer beside it; want tokenizer.json, vocab.txt, or vocab.json with merges.txt " +
				"in FOLDER"},
		{"truncated ONNX", map[string]string{"model.onnx": graph[:5000], "config.json": config, "vocab.txt": ""},
			"model.onnx",
			"FOLDER/model.onnx: truncated, or not an ONNX file: it ends inside a field"},
		{"ONNX without its data", map[string]string{"model.onnx": content(t,
			filepath.Join(tinyModel("bert"), "dynamo.onnx")), "config.json": config, "vocab.txt": ""}, "model.onnx",
			`FOLDER/model.onnx: initializer "embeddings.word_embeddings.weight": stat FOLDER/dynamo.onnx.data: no such file or directory`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := openError(t, folder(t, test.files), test.open, encoders.Env{})
			if got != test.want && !(test.name == "pickles" && strings.HasPrefix(got, test.want)) {
				t.Errorf("the error is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestWeightsUnderOtherNamesAreNamed(t *testing.T) {
	for want, names := range map[string][]string{
		"model.onnx": {"README.md"},
		`; if "model.fp16.safetensors" is whole, name it model.safetensors`: {"model.fp16.safetensors"},
		`; it has ["m-1.safetensors" "m-2.safetensors"] without the index, which names the file of each tensor: ` +
			"download that too": {"m-1.safetensors", "m-2.safetensors"},
		`; it has ["model.gguf" "tf_model.h5"], which are not read`:     {"tf_model.h5", "model.gguf"},
		`; it has ["model.safetensors.incomplete"], which are not read`: {"model.safetensors.incomplete"},
	} {
		dir := t.TempDir()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openWeights(dir, dir); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", names, err, want)
		}
	}
}

func TestTensorsThatDoNotFitAreListedInOneError(t *testing.T) {
	config := content(t, filepath.Join(tinyModel("bert"), "config.json"))
	open := func(t *testing.T, change func(tensors map[string]*safetensors.Tensor)) string {
		tensors := readTensors(t, filepath.Join(tinyModel("bert"), "model.safetensors"))
		byName := map[string]*safetensors.Tensor{}
		for i := range tensors {
			byName[tensors[i].Name] = &tensors[i]
		}
		change(byName)
		tensors = nil
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			tensors = append(tensors, *byName[name])
		}
		dir := folder(t, map[string]string{"config.json": config})
		writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)
		return openError(t, dir, "", encoders.Env{})
	}

	t.Run("floats that are not read", func(t *testing.T) {
		for dtype, width := range map[string]int{"F64": 8, "F8_E4M3": 1, "F8_E5M2": 1} {
			got := open(t, func(tensors map[string]*safetensors.Tensor) {
				for _, x := range tensors {
					x.DType, x.Raw, x.Data = dtype, make([]byte, len(x.Data)*width), nil
				}
			})
			remedy := "want the model from before it was quantized"
			if dtype == "F64" {
				remedy = `AutoModel.from_pretrained("FOLDER").float().save_pretrained("FOLDER")`
			}
			if strings.Contains(got, "\n") || !strings.Contains(got, " tensors of type "+dtype+", as ") ||
				!strings.HasSuffix(got, remedy) {
				t.Errorf("the error is\n%s", got)
			}
		}
	})
	t.Run("names, shapes and types", func(t *testing.T) {
		got := open(t, func(tensors map[string]*safetensors.Tensor) {
			delete(tensors, "embeddings.position_embeddings.weight")
			tensors["encoder.layer.1.intermediate.dense.weight"].Shape = []int{10, 14}
			*tensors["encoder.layer.1.output.LayerNorm.bias"] = safetensors.Tensor{
				Name: "encoder.layer.1.output.LayerNorm.bias", Shape: []int{10}, DType: "I64", Raw: make([]byte, 80)}
		})
		want := `FOLDER/model.safetensors: tensor "embeddings.position_embeddings.weight" is missing
FOLDER/model.safetensors: tensor "encoder.layer.1.intermediate.dense.weight" has shape [10 14]; config.json requires [14 10]
FOLDER/model.safetensors: tensor "encoder.layer.1.output.LayerNorm.bias" has type I64; F32, F16 and BF16 are read`
		if got != want {
			t.Errorf("the error is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("values", func(t *testing.T) {
		got := open(t, func(tensors map[string]*safetensors.Tensor) {
			tensors["embeddings.word_embeddings.weight"].Data[7] = float32(math.NaN())
			tensors["encoder.layer.0.attention.self.query.bias"].Data[9] = float32(math.Inf(-1))
		})
		want := `FOLDER/model.safetensors: tensor "embeddings.word_embeddings.weight" holds NaN as value 7 of 300
FOLDER/model.safetensors: tensor "encoder.layer.0.attention.self.query.bias" holds -Inf as value 9 of 10`
		if got != want {
			t.Errorf("the error is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("at most twenty", func(t *testing.T) {
		got := open(t, func(tensors map[string]*safetensors.Tensor) { clear(tensors) })
		if lines := strings.Split(got, "\n"); len(lines) != 21 || lines[20] != "and 17 more tensors" {
			t.Errorf("the error is\n%s\nwant 20 of 37 tensors and how many more", got)
		}
	})
	t.Run("several encoders", func(t *testing.T) {
		got := open(t, func(tensors map[string]*safetensors.Tensor) {
			words := tensors["embeddings.word_embeddings.weight"]
			clear(tensors)
			for _, prefix := range []string{"question.", "answer."} {
				copied := *words
				copied.Name = prefix + copied.Name
				tensors[copied.Name] = &copied
			}
		})
		want := `FOLDER/model.safetensors: several encoders, under the names ["answer." "question."]; want one`
		if got != want {
			t.Errorf("the error is\n%s\nwant\n%s", got, want)
		}
	})
}

// openFrozen opens a model as for prediction.
func openFrozen(t *testing.T, path, freeze string) *encoder {
	t.Helper()
	e, err := New(Options{}, encoders.Env{Model: path, Freeze: freeze, Params: nn.NewParams(1).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	return e.(*encoder)
}

// copyOf copies a tiny model, its values changed by edit, to a folder that may be changed.
func copyOf(t *testing.T, name string, edit func(tensor string, values []float32)) string {
	t.Helper()
	dir := folder(t, map[string]string{"config.json": content(t, filepath.Join(tinyModel(name), "config.json"))})
	tensors := readTensors(t, filepath.Join(tinyModel(name), "model.safetensors"))
	for _, tensor := range tensors {
		edit(tensor.Name, tensor.Data)
	}
	writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)
	return dir
}

// skipUnmapped skips a test of a mapped encoder on systems without mapping.
func skipUnmapped(t *testing.T, e *encoder) {
	t.Helper()
	if len(e.source.mapped) == 0 {
		t.Skip("this system or processor does not use mapped values")
	}
}

func TestAFrozenEncodersWordsAreTheFiles(t *testing.T) {
	for _, freeze := range []string{"all", "embeddings", "1"} {
		t.Run(freeze, func(t *testing.T) {
			e, read := openFrozen(t, tinyModel("bert"), freeze), openModel(t, tinyModel("bert"))
			skipUnmapped(t, e)
			equalParameters(t, e, read)
			texts := stateTexts(tinyLengths, e.config.Vocabulary)
			if !slices.Equal(evaluate(t, e, texts), evaluate(t, read, texts)) {
				t.Error("the states have other bits than those of an encoder that was read")
			}
			if err := e.close(); err != nil {
				t.Error(err)
			}
		})
	}
	if e := openModel(t, tinyModel("bert")); len(e.source.mapped) > 0 {
		t.Error("an encoder that learns has its words in the file, where they cannot be changed")
	}
}

func TestAMappedEncoderIsSavedOverItsOwnFile(t *testing.T) {
	dir := copyOf(t, "bert", func(string, []float32) {})
	e := openFrozen(t, dir, "all")
	if err := e.save(nil)(dir); err != nil {
		t.Fatal(err)
	}
	equalParameters(t, openModel(t, dir), e)
}

func TestANaNInAWordEmbeddingIsFoundWhenItIsRead(t *testing.T) {
	dir := copyOf(t, "bert", func(tensor string, values []float32) {
		if strings.HasSuffix(tensor, "word_embeddings.weight") {
			values[len(values)-2] = float32(math.Inf(1))
		}
	})
	e := openFrozen(t, dir, "all")
	skipUnmapped(t, e)
	last := int32(e.config.Vocabulary - 1)
	encode := func(ids ...int32) error {
		_, err := e.Encode(nn.NewPass(1), pack(ids), encoders.Mode{})
		return err
	}
	if err := encode(0, last-1); err != nil {
		t.Errorf("words with numbers: %v", err)
	}
	err := encode(0, last)
	if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "model.safetensors")+": tensor ") ||
		!strings.Contains(err.Error(), "holds +Inf as value") {
		t.Errorf("a word embedding of +Inf gives the error %v", err)
	}
}

func TestAFileThatIsTruncatedInUseIsAnError(t *testing.T) {
	dir := copyOf(t, "bert", func(string, []float32) {})
	path := filepath.Join(dir, "model.safetensors")
	e := openFrozen(t, dir, "all")
	skipUnmapped(t, e)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, encoding := e.Encode(nn.NewPass(1), pack([]int32{1}), encoders.Mode{})
	_, reading := e.embedWords([]int32{1})
	for _, err := range []error{encoding, reading} {
		if err == nil || !strings.HasPrefix(err.Error(), path+": tensor ") ||
			!strings.Contains(err.Error(), "was truncated while it was in use") {
			t.Errorf("a truncated file gives the error %v", err)
		}
	}
}

func TestAClosedEncoderPanics(t *testing.T) {
	e := openFrozen(t, tinyModel("bert"), "all")
	skipUnmapped(t, e)
	for range 2 {
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if r, _ := recover().(string); r != "transformer: an encoder is used after Close" {
			t.Errorf("panic %q", r)
		}
	}()
	e.Encode(nn.NewPass(1), pack([]int32{0}), encoders.Mode{})
}
