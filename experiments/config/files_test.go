package config

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// filesOf is an experiment in a folder whose task has the given data.
func filesOf(t *testing.T, data string, files ...string) (*Experiment, string, error) {
	t.Helper()
	contents := map[string]string{"exp.yaml": "model: {encoder: {type: transformer, layers: 1}}\n" +
		"tasks: [{name: mood, type: classification, data: {" + data + "}}]\n"}
	for _, name := range files {
		contents[name] = "{}\n"
	}
	dir := sample.Folder(t, contents)
	e, err := Read(t.Context(), filepath.Join(dir, "exp.yaml"), nil)
	return e, dir, err
}

func TestSeveralFilesASplit(t *testing.T) {
	files := []string{"data/part-10.jsonl", "data/part-2.jsonl", "data/part-1.jsonl", "data/other.jsonl", "dev.jsonl"}
	for _, test := range []struct {
		data  string
		train []string
	}{
		{`train: "data/part-*.jsonl"`, []string{"data/part-1.jsonl", "data/part-10.jsonl", "data/part-2.jsonl"}},
		{`train: ["data/part-1?.jsonl", data/other.jsonl]`, []string{"data/part-10.jsonl", "data/other.jsonl"}},
		{`train: {path: [data/part-2.jsonl, data/other.jsonl], encoding: cp1252}`,
			[]string{"data/part-2.jsonl", "data/other.jsonl"}},
		{`train: "data/part-[12].jsonl", stream: true`, []string{"data/part-1.jsonl", "data/part-2.jsonl"}},
	} {
		e, dir, err := filesOf(t, test.data+", dev: dev.jsonl", files...)
		if err != nil {
			t.Errorf("%s: %v", test.data, err)
			continue
		}
		want := make([]string, len(test.train))
		for i, name := range test.train {
			want[i] = filepath.Join(dir, name)
		}
		if got := e.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("%s: files %q, want %q", test.data, got, want)
		}

		// the written experiment names the same files
		var text bytes.Buffer
		run := filepath.Join(dir, "run")
		if err := os.MkdirAll(run, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := e.Write(&text, run); err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(run, "experiment.yaml")
		if err := os.WriteFile(written, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Read(t.Context(), written, nil)
		if err != nil {
			t.Errorf("%s is written as\n%s: %v", test.data, &text, err)
			continue
		}
		d := again.Tasks[0].Data
		if got := d.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("%s: written files %q, want %q", test.data, got, want)
		}
		if strings.Contains(test.data, "cp1252") != (d.FormatOf(d.Train.Name).Encoding == "cp1252") {
			t.Errorf("%s: the written format is %+v", test.data, d.FormatOf(d.Train.Name))
		}
		if d.Stream != strings.Contains(test.data, "stream") {
			t.Errorf("%s: stream is written as %v", test.data, d.Stream)
		}
	}
}

func TestErrorsOfSeveralFiles(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	for data, want := range map[string]string{
		`train: "data/part-*.csv"`:                 `matches no file, nor below $JENGA_DATA, which is not set; `,
		`train: "none/*.jsonl"`:                    "there is no folder ",
		`train: "data/[.jsonl"`:                    `"data/[.jsonl" is no pattern: syntax error in pattern; * and`,
		`train: []`:                                "data: train: the list is empty; want a path at least",
		`train: [dev.jsonl, "*.jsonl"]`:            "duplicate file ",
		`train: [dev.jsonl, [a]]`:                  "want a path or a pattern, have a list",
		`train: dev.jsonl.gz, stream: true`:        "dev.jsonl.gz: a gzip file has no places to read from; unpack it",
		`train: data, stream: true, format: slots`: "data is a folder, which is read as a whole; want a file",
		`train: a.json, stream: true`:              "a.json: format json is read as a whole; want one of jsonl, csv",
		`path: a.json, stream: true`:               "a.json: format json is read as a whole; want one of jsonl, csv",
	} {
		_, _, err := filesOf(t, data, "data/part-1.jsonl", "dev.jsonl", "dev.jsonl.gz", "a.json")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", data, err, want)
		}
	}
	_, dir, err := filesOf(t, `train: "data/part-*.csv"`, "data/part-1.jsonl", "data/b")
	if want := filepath.Join(dir, "data") + " has b, part-1.jsonl"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestPatternsInFoldersWithSigns reads patterns in folders whose own names have the signs of a pattern.
func TestPatternsInFoldersWithSigns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names have no * and ? on Windows")
	}
	const data = `train: ["part-*.jsonl", "more/[ab].jsonl"], dev: dev.jsonl`
	experiment := "model: {encoder: {type: transformer, layers: 1}}\n" +
		"tasks: [{name: mood, type: classification, data: {" + data + "}}]\n"
	names := []string{"part-1.jsonl", "part-2.jsonl", "more/a.jsonl"}
	for _, test := range []struct{ experiment, data string }{
		{"a[1] *?", "a[1] *?"},
		{"a", `b[x]\c*`}, // below $JENGA_DATA
	} {
		contents := map[string]string{test.experiment + "/exp.yaml": experiment, test.data + "/dev.jsonl": "{}\n"}
		for _, name := range names {
			contents[test.data+"/"+name] = "{}\n"
		}
		dir := sample.Folder(t, contents, "run/experiment.yaml")
		t.Setenv("JENGA_DATA", filepath.Join(dir, test.data))
		var want []string
		for _, name := range names {
			want = append(want, filepath.Join(dir, test.data, name))
		}
		e, err := Read(t.Context(), filepath.Join(dir, test.experiment, "exp.yaml"), nil)
		if err != nil {
			t.Errorf("%q: %v", test.data, err)
			continue
		}
		if got := e.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}

		// the experiment of a run elsewhere names the same files
		t.Setenv("JENGA_DATA", "")
		var text bytes.Buffer
		if err := e.Write(&text, filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(dir, "run/experiment.yaml")
		sample.Write(t, written, text.String())
		again, err := Read(t.Context(), written, nil)
		if err != nil {
			t.Errorf("%q is written as\n%s: %v", test.data, &text, err)
			continue
		}
		if got := again.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("written files %q, want %q", got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	const file = `
model: {base_model: org/small}
tasks: [{name: kind, type: classification, data: {train: corpus/train.jsonl, dev: corpus/dev.jsonl}}]
`
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_HOME", t.TempDir())
	beside := sample.Folder(t, map[string]string{"exp.yaml": file}, "org/small/config.json", "corpus/train.jsonl",
		"corpus/dev.jsonl")
	elsewhere := sample.Folder(t, map[string]string{"hub/models--org--small/refs/main": "abc\n"},
		"org/small/config.json", "hub/models--org--small/snapshots/abc/config.json", "corpus/train.jsonl",
		"corpus/dev.jsonl")
	alone := filepath.Join(sample.Folder(t, map[string]string{"exp.yaml": file}), "exp.yaml")
	check := func(t *testing.T, e *Experiment, model, train string) {
		t.Helper()
		if got := e.Model.BaseModel.Name; got != model {
			t.Errorf("base_model is %s, want %s", got, model)
		}
		if got := e.Tasks[0].Data.Train.Name; got != train {
			t.Errorf("train is %s, want %s", got, train)
		}
	}

	t.Run("paths are relative to the file", func(t *testing.T) {
		t.Setenv("JENGA_DATA", elsewhere)
		t.Setenv("JENGA_MODELS", elsewhere)
		check(t, mustRead(t, filepath.Join(beside, "exp.yaml")), filepath.Join(beside, "org/small"),
			filepath.Join(beside, "corpus/train.jsonl"))
	})
	t.Run("missing files are found below JENGA_DATA and JENGA_MODELS", func(t *testing.T) {
		t.Setenv("JENGA_DATA", elsewhere)
		t.Setenv("JENGA_MODELS", elsewhere)
		check(t, mustRead(t, alone), filepath.Join(elsewhere, "org/small"),
			filepath.Join(elsewhere, "corpus/train.jsonl"))
	})
	t.Run("a hub name is found in the hub's cache", func(t *testing.T) {
		t.Setenv("JENGA_DATA", elsewhere)
		t.Setenv("HF_HUB_CACHE", filepath.Join(elsewhere, "hub"))
		check(t, mustRead(t, alone), filepath.Join(elsewhere, "hub/models--org--small/snapshots/abc"),
			filepath.Join(elsewhere, "corpus/train.jsonl"))
	})
	t.Run("a hub name may have a revision", func(t *testing.T) {
		t.Setenv("JENGA_DATA", elsewhere)
		t.Setenv("HF_HUB_CACHE", filepath.Join(elsewhere, "hub"))
		check(t, mustRead(t, alone, "model.base_model=org/small@main"),
			filepath.Join(elsewhere, "hub/models--org--small/snapshots/abc"),
			filepath.Join(elsewhere, "corpus/train.jsonl"))
	})
	t.Run("paths in --set are relative to the working directory", func(t *testing.T) {
		t.Chdir(elsewhere)
		e := mustRead(t, filepath.Join(beside, "exp.yaml"), "model.base_model=org/small",
			"tasks.kind.data.train=corpus/train.jsonl")
		check(t, e, filepath.FromSlash("org/small"), filepath.FromSlash("corpus/train.jsonl"))
	})
	t.Run("a file found nowhere is a mistake with the searched places", func(t *testing.T) {
		t.Setenv("JENGA_DATA", beside+"/org")
		t.Setenv("JENGA_MODELS", "")
		_, err := Read(t.Context(), alone, nil)
		want := []string{
			alone + `:2:21: model: base_model: no folder or .onnx file "org/small", nor below $JENGA_MODELS, which is not set, nor in the Hugging Face cache; if it is a model of the hub, "jenga pull org/small" downloads it`,
			alone + `:3:58: task "kind": corpus/train.jsonl: no such file, nor below $JENGA_DATA, ` + beside + "/org",
			alone + `:3:83: task "kind": corpus/dev.jsonl: no such file, nor below $JENGA_DATA, ` + beside + "/org",
		}
		if err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("%v\nwant\n%s", err, strings.Join(want, "\n"))
		}
	})
	t.Run("a run's data may be gone", func(t *testing.T) {
		e, err := ReadTrained(alone)
		if err != nil {
			t.Fatal(err)
		}
		check(t, e, filepath.Join(filepath.Dir(alone), "org/small"),
			filepath.Join(filepath.Dir(alone), "corpus/train.jsonl"))
	})
}

func TestEncoderTypeIsReadFromTheBaseModel(t *testing.T) {
	folder := t.TempDir()
	for config, want := range map[string]string{
		`{"model_type": "bilstm"}`: "bilstm", `{"model_type": "bert"}`: "transformer",
		`{"model_type": "no such"}`: "transformer", `{`: "transformer",
	} {
		if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := encoderType(folder); got != want {
			t.Errorf("config %s: %s, want %s", config, got, want)
		}
	}
	if got := encoderType(filepath.Join(folder, "nowhere")); got != "transformer" {
		t.Errorf("without a config: %s", got)
	}
}

// Go code may choose an encoder that no file names.
func TestEncoderChosenInGoIsKept(t *testing.T) {
	e := mustRead(t, filepath.Join(supportDeskFolder(t), "exp.yaml"))
	choice, err := encoders.Registry().FromString("bilstm", "")
	if err != nil {
		t.Fatal(err)
	}
	m := e.Model
	e.Model = Model{BaseModel: m.BaseModel, Encoder: choice, Fusion: m.Fusion, Freeze: m.Freeze}

	if got, err := e.EncoderIn(t.TempDir()); err != nil || got.Type != "bilstm" {
		t.Errorf("the encoder of a folder is %q, %v; want bilstm", got.Type, err)
	}
	var text strings.Builder
	if err := e.Write(&text, "."); err != nil {
		t.Fatal(err)
	}
	again, err := decode(t.Context(), "exp.yaml", []byte(text.String()), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Model.Encoder.Type; got != "bilstm" {
		t.Errorf("the encoder is read again as %s, want bilstm", got)
	}
}

// weightsOf returns a safetensors file with n weights of a type.
func weightsOf(dtype string, n int) string {
	size := map[string]int{"F32": 4, "F16": 2}[dtype] * n
	header := fmt.Sprintf(`{"w":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]}}`, dtype, n, size)
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + string(make([]byte, size))
}

func TestLocalModelsAreThoseThatJengaReadsSmallestFirst(t *testing.T) {
	hub, models := t.TempDir(), t.TempDir()
	t.Setenv("HF_HUB_CACHE", hub)
	t.Setenv("JENGA_MODELS", models)
	put := func(folder, kind string, weights int, files ...string) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		content := map[string]string{"config.json": `{"model_type": "` + kind + `"}`, "vocab.txt": "a\n",
			"model.safetensors": weightsOf("F32", weights)}
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content[name]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	cache := func(name, kind string, weights int, files ...string) {
		t.Helper()
		put(filepath.Join(hub, name, "snapshots", "abc"), kind, weights, files...)
		put(filepath.Join(hub, name, "refs"), "", 0)
		if err := os.WriteFile(filepath.Join(hub, name, "refs", "main"), []byte("abc"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"config.json", "vocab.txt", "model.safetensors"}
	cache("models--org--medium-size", "bert", 20, all...)
	cache("models--small", "distilbert", 10, all...)
	cache("models--org--byte-pairs", "roberta", 5, all...)
	cache("models--org--half", "bert", 5, all[:2]...)
	put(filepath.Join(models, "large"), "bert", 30, all...)
	put(filepath.Join(models, "notes"), "", 0)
	put(filepath.Join(models, "damaged"), "bert", 1, all...)
	put(filepath.Join(models, "halved"), "bert", 30, all...)
	for name, content := range map[string]string{"damaged": "x", "halved": weightsOf("F16", 30)} {
		if err := os.WriteFile(filepath.Join(models, name, "model.safetensors"), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}

	want := []string{"small", "org/medium-size", "large", "halved"}
	if got := LocalModels([]string{"bert", "distilbert"}); !slices.Equal(got, want) {
		t.Errorf("LocalModels() = %v, want %v", got, want)
	}
}

// A name that init finds is one that base_model finds, wherever the variables of huggingface_hub put the cache.
func TestLocalModelsAreInTheCacheThatBaseModelSearches(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home) // on Windows
	snapshot := filepath.Join(home, "cache", "models--small", "snapshots", "abc")
	refs := filepath.Join(home, "cache", "models--small", "refs")
	for path, content := range map[string]string{
		filepath.Join(snapshot, "config.json"):       `{"model_type": "bert"}`,
		filepath.Join(snapshot, "vocab.txt"):         "a\n",
		filepath.Join(snapshot, "model.safetensors"): weightsOf("F32", 1),
		filepath.Join(refs, "main"):                  "abc",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HF_HUB_CACHE": "~/cache", "HUGGINGFACE_HUB_CACHE": filepath.Join(home, "cache"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("JENGA_MODELS", "")
			t.Setenv("HF_HOME", "")
			t.Setenv("HF_HUB_CACHE", "")
			t.Setenv("HUGGINGFACE_HUB_CACHE", "")
			t.Setenv(name, value)
			if got := LocalModels([]string{"bert", "distilbert"}); !slices.Equal(got, []string{"small"}) {
				t.Errorf("LocalModels() = %v, want [small]", got)
			}
		})
	}
}
