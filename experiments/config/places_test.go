package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

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
		_, err := Read(alone, nil)
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
	again, err := decode("exp.yaml", []byte(text.String()), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Model.Encoder.Type; got != "bilstm" {
		t.Errorf("the encoder is read again as %s, want bilstm", got)
	}
}
