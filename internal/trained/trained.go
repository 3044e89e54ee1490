// Package trained trains small runs for the tests of several packages.
package trained

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// Run trains an experiment file into a folder, which it returns.
func Run(t testing.TB, file, folder string, sets ...string) string {
	t.Helper()
	e, err := config.Read(t.Context(), file, sets)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Prepare(t.Context(), e, nil, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(t.Context(), folder, func(train.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Tasks of runs from a Base: the data of one, and a whole one.
const (
	Mails = "data: {path: mails.jsonl, label: team, split: {dev: 0.2, seed: 3}}}\n"
	Teams = "  - {name: team, type: classification, " + Mails
)

// Base is a base model, and a folder with the mails of sample.Small beside it.
type Base struct{ Dir, Encoder string }

// NewBase trains a base model.
func NewBase(t testing.TB) Base {
	t.Helper()
	file := sample.Small(t, "")
	dir := filepath.Dir(file)
	run := Run(t, file, filepath.Join(dir, "base"), "training.max_steps=20", "model.fusion=none")
	return Base{dir, filepath.Join(run, runfolder.BestDir, runfolder.EncoderDir)}
}

// Run trains tasks, a list in YAML, from the base model into the folder called name, which it returns.
func (b Base) Run(t testing.TB, name, tasks string, sets ...string) string {
	t.Helper()
	file := filepath.Join(b.Dir, filepath.Base(name)+".yaml")
	sample.Write(t, file, "model: {base_model: "+b.Encoder+"}\ntokenizer: {max_length: 64}\ntasks:\n"+tasks+
		"training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 3}\n")
	return Run(t, file, filepath.Join(b.Dir, name), sets...)
}

// Kinds trains a run with a task of each kind on texts, pairs, questions and words, and returns its folder.
func Kinds(t testing.TB) string {
	t.Helper()
	files := sample.KindsFiles()
	files["kinds.yaml"] = `
model:
  encoder: {type: transformer, layers: 1, width: 8, heads: 2, feed_forward: 8, max_positions: 32}
  fusion: {type: attention, scale: gated}
tokenizer: {max_length: 32, train: {vocab_size: 100}}
tasks:
` + sample.KindsTasks + `training: {learning_rate: 1.0e-2, num_epochs: 1}
`
	dir := sample.Folder(t, files)
	return Run(t, filepath.Join(dir, "kinds.yaml"), filepath.Join(dir, "kinds"))
}
