package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 912\n"

func TestAPatternMatchesNoHiddenFiles(t *testing.T) {
	files := []string{"data/a.jsonl", "data/._a.jsonl", "data/.a.jsonl", ".old/a.jsonl", "b/.c/x.jsonl", "b/d/x.jsonl"}
	for pattern, want := range map[string][]string{
		"data/*.jsonl":    {"data/a.jsonl"},
		"data/?*a.jsonl":  nil,
		"data/[.a]*":      {"data/a.jsonl"},
		"data/.*.jsonl":   {"data/._a.jsonl", "data/.a.jsonl"},
		"./data/../*/a.*": {"data/a.jsonl"},
		".old/*":          {".old/a.jsonl"},
		"b/*/x.jsonl":     {"b/d/x.jsonl"},
	} {
		e, dir, err := filesOf(t, `train: "`+pattern+`", dev: data/a.jsonl`, files...)
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "matches no file") {
				t.Errorf("%s: error %v", pattern, err)
			}
			continue
		}
		if err != nil && !strings.Contains(err.Error(), "duplicate") {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var got []string
		for _, path := range e.Tasks[0].Data.Train.Paths() {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: files %q, want %q", pattern, got, want)
		}

		// as arguments of commands
		t.Chdir(dir)
		if named, err := FilesNamed([]string{pattern}); err != nil || len(named.Paths()) != len(want) {
			t.Errorf("%s names %v, %v", pattern, named.Paths(), err)
		}
	}
}

const bert = `{"model_type": "bert"}`

var modelFolders = map[string]string{
	"a.jsonl":                                 "{}\n",
	"peft/adapter_config.json":                `{"base_model_name_or_path": "org/base", "peft_type": "LORA"}`,
	"peft/adapter_model.safetensors":          "",
	"beside/adapter_config.json":              `{"base_model_name_or_path": "org/base", "peft_type": "LORA"}`,
	"beside/config.json":                      bert,
	"unnamed/adapter_config.json":             "{}",
	"unnamed/config.json":                     bert,
	"below/config.json":                       bert,
	"below/lora/adapter_config.json":          `{"base_model_name_or_path": "org/base", "peft_type": "LORA"}`,
	"odd/adapter_config.json":                 lfsPointer,
	"nameless/adapter_config.json":            "\ufeff{}",
	"sentences/0_Transformer/config.json":     bert,
	"sentences/modules.json":                  `[{"path": "0_Transformer"}]`,
	"empty/0_Transformer/config.json":         bert,
	"empty/modules.json":                      "[]",
	"pointer/modules.json":                    lfsPointer,
	"pointer/config.json":                     bert,
	"object/modules.json":                     "{}",
	"sentences/1_Pooling/config.json":         "{}",
	"old/0_BERT/config.json":                  bert,
	"new/config.json":                         bert,
	"new/0_Transformer/config.json":           bert,
	"two/0_A/config.json":                     bert,
	"two/0_B/config.json":                     bert,
	"named/modules.json":                      `[{"path": "encoder"}, {"path": "1_Pooling"}]`,
	"named/encoder/config.json":               bert,
	"named/0_x/config.json":                   bert,
	"away/modules.json":                       `[{"path": "../new"}]`,
	"part/modules.json":                       `[{"path": "0_Missing"}, {"path": "1_Pooling"}]`,
	"part/0_Other/config.json":                bert,
	"broken/modules.json":                     "{",
	"glove/modules.json":                      `[{"path": "0_W", "type": "a.models.WordEmbeddings"}]`,
	"glove/0_W/x.bin":                         "x",
	"bow/modules.json":                        `[{"path": "0_BoW", "type": "a.BoW"}]`,
	"bow/0_BoW/config.json":                   "{}",
	"clip/modules.json":                       `[{"path": "0_CLIPModel", "type": "a.CLIPModel"}]`,
	"clip/0_CLIPModel/config.json":            `{"model_type": "clip"}`,
	"static/modules.json":                     `[{"path": "", "type": "StaticEmbedding"}]`,
	"static/tokenizer.json":                   "{}",
	"bert/modules.json":                       `[{"path": "", "type": "sentence_transformers.models.Transformer"}]`,
	"bert/config.json":                        bert,
	"broken/0_Transformer/config.json":        bert,
	"models--a--b/snapshots/c0/config.json":   bert,
	"models--a--b/refs/main":                  "c0",
	"models--a--two/snapshots/c0/config.json": bert,
	"models--a--two/snapshots/c1/config.json": bert,
}

func TestFoldersOfModelsThatAreNone(t *testing.T) {
	dir := sample.Folder(t, modelFolders)
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "sub"))
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "sub", "old")); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]struct{ path, err string }{
		"peft":     {err: `peft has adapter_config.json, an adapter of PEFT, whose weights are changes of the model "`},
		"beside":   {err: `.save_pretrained(FOLDER); without adapter_config.json the weights beside it are read`},
		"below":    {path: "below"},
		"odd":      {err: "odd/adapter_config.json: a pointer of Git LFS in place of the file of 912 bytes"},
		"nameless": {err: `changes of a model that it does not name; want that model, or one with the changes in it`},
		"named":    {path: "named/encoder"},
		"away":     {err: `away/modules.json: the first module is in "../new", outside of the model`},
		"part":     {err: `part/modules.json: the first module is in the folder "0_Missing", which is missing; `},
		"broken":   {err: "broken/modules.json:1: not JSON: unexpected end of JSON input; it lists the modules of"},
		"empty":    {err: "empty/modules.json: it lists no module; want the list of a model of sentence-transformers"},
		"pointer":  {err: "pointer/modules.json: a pointer of Git LFS in place of the file of 912 bytes; "},
		"object":   {err: "object/modules.json: it holds a JSON object; want a list; it lists the modules"},
		"glove": {err: "glove/modules.json: the first module is WordEmbeddings (type: " +
			"a.models.WordEmbeddings), which is no transformer of texts"},
		"bow":    {err: "the first module is BoW"},
		"clip":   {err: "the first module is CLIPModel"},
		"static": {err: "the first module is StaticEmbedding"},
		"bert":   {path: "bert"},

		"models--a--b":           {path: "models--a--b/snapshots/c0"},
		"models--a--b/snapshots": {path: "models--a--b/snapshots/c0"},
		"models--a--two":         {path: "models--a--two"},
		"sentences":              {path: "sentences/0_Transformer"},
		"old":                    {path: "sub/old/0_BERT"},
		"new":                    {path: "new"},
		"two":                    {path: "two"},
	} {
		text := "model: {base_model: " + model + "}\ntasks: [{name: a, type: classification, data: {train: a.jsonl}}]\n"
		sample.Write(t, filepath.Join(dir, "exp.yaml"), text)
		e, err := Read(t.Context(), filepath.Join(dir, "exp.yaml"), nil)
		switch {
		case want.err != "":
			if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want.err) {
				t.Errorf("%s: error %v, want %s", model, err, want.err)
			}
		case err != nil:
			t.Errorf("%s: %v", model, err)
		case e.Model.BaseModel.Name != filepath.Join(dir, filepath.FromSlash(want.path)):
			t.Errorf("%s: %s, want %s", model, e.Model.BaseModel.Name, want.path)
		}
	}
}

func TestAnExperimentFileThatStandsForAnother(t *testing.T) {
	dir := sample.Folder(t, map[string]string{"exp.yaml": lfsPointer, "page.yaml": "<!doctype html>\n<title>a</title>"})
	for name, want := range map[string]string{"exp.yaml": "a pointer of Git LFS", "page.yaml": "a page of HTML"} {
		_, err := Read(t.Context(), filepath.Join(dir, name), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}

	// after what the error of a compressed file advises, it is read
	t.Chdir(dir)
	const text = "model: {encoder: {type: transformer, layers: 1}}\n" +
		"tasks: [{name: a, type: classification, data: {train: a.jsonl}}]\n"
	sample.Write(t, "a.jsonl", "{}\n")
	sample.Write(t, "z.yaml", text)
	if out, err := exec.Command("sh", "-c", "gzip z.yaml && mv z.yaml.gz z.yaml").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	_, err := Read(t.Context(), "z.yaml", nil)
	if err == nil || !strings.Contains(err.Error(), "in its folder, ") {
		t.Fatalf("error %v", err)
	}
	_, command, _ := strings.Cut(err.Error(), "in its folder, ")
	command = strings.TrimSuffix(command, " decompresses it")
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	if _, err := Read(t.Context(), "z.yaml", nil); err != nil {
		t.Error(err)
	}
}
