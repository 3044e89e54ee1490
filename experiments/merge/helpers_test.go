package merge

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
)

// trainRun trains an experiment file into a folder.
func trainRun(t *testing.T, file, folder string, sets ...string) string {
	t.Helper()
	e, err := config.Read(file, sets)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Prepare(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), folder, func(any) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Tasks of the runs, which read the mails of sample.Small.
const (
	mails  = "data: {path: mails.jsonl, label: team, split: {dev: 0.2, seed: 3}}}\n"
	teams  = "  - {name: team, type: classification, " + mails
	things = "  - {name: things, type: ner, " + mails
	both   = teams + "  - {name: word, type: ner, data: {same_as: team}}\n"
)

// base is a base model, and a folder with data beside it.
type base struct{ dir, encoder string }

func newBase(t *testing.T) base {
	t.Helper()
	file := sample.Small(t, "")
	dir := filepath.Dir(file)
	trainRun(t, file, filepath.Join(dir, "base"), "training.max_steps=20", "model.fusion=none")
	return base{dir, filepath.Join(dir, "base", runfolder.BestDir, runfolder.EncoderDir)}
}

// run trains tasks from the base model into the folder called name.
func (b base) run(t *testing.T, name, tasks string, sets ...string) string {
	t.Helper()
	file := filepath.Join(b.dir, filepath.Base(name)+".yaml")
	sample.Write(t, file, "model: {base_model: "+b.encoder+"}\ntokenizer: {max_length: 64}\ntasks:\n"+tasks+
		"training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 3}\n")
	return trainRun(t, file, filepath.Join(b.dir, name), sets...)
}

// encoderOf returns the values of an encoder's file, by name.
func encoderOf(t *testing.T, folder string) map[string][]float32 {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	values := map[string][]float32{}
	for _, info := range file.Tensors() {
		if values[info.Name], err = file.Floats(info.Name); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// mergeInto merges runs into a folder and returns the figures of their heads.
func mergeInto(t *testing.T, folder string, o Options, runs []string, renames ...Rename) []Figure {
	t.Helper()
	m, err := Open(runs, o, renames, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	figures, err := m.Before(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(folder, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := After(context.Background(), figures, folder); err != nil {
		t.Fatal(err)
	}
	return figures
}
