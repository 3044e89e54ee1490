package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// The losses of 200 steps of each objective are PyTorch's, written by scripts/fixtures/objectives.py, whose doc comment
// describes the network and its data.
func TestObjectivesFollowPyTorch(t *testing.T) {
	shared.SkipUnlessLong(t)
	dir := shared.Dir(t)
	t.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	text, err := os.ReadFile("testdata/objectives.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]float64
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, task := range map[string]string{
		"one label": `type: classification, data: {train: FILE, dev: FILE, format: csv, header: false, delimiter: " ", columns: [label, text], encoding: latin1}/trec6/TREC.train.all`,
		"labels":    `type: multi_label, data: {train: FILE, dev: FILE, quote: none, header: false, columns: [text, labels]}/goemotions/train.tsv`,
		"tags":      `type: ner, data: {train: FILE, dev: FILE, format: conll}/wnut17/wnut17train.conll`,
		"crf":       `type: ner, data: {train: FILE, dev: FILE, format: conll}, heads: [{type: crf}]/wnut17/wnut17train.conll`,
		"number":    `type: regression, data: {train: FILE, dev: FILE, format: tsv, quote: none, header: false, columns: [_, _, _, _, value, text, pair]}, heads: [{type: regression, scale: standard}]/stsb/sts-train.csv`,
		"span":      `type: question_answering, long: truncate, data: {train: FILE, dev: FILE}/xquad_en/xquad.en.json`,
	} {
		t.Run(name, func(t *testing.T) {
			if len(want[name]) != 200 {
				t.Fatalf("%d losses, want 200", len(want[name]))
			}
			followObjective(t, name, task, want[name])
		})
	}
}

// followObjective trains a task, given as OPTIONS/FILE, on its examples in the order of the file.
func followObjective(t *testing.T, name, task string, want []float64) {
	size, longest := 8, 64
	if name == "span" {
		size, longest = 4, 96
	}
	options, file, _ := strings.Cut(task, "/")
	if filepath.Ext(file) != ".json" {
		file = firstRecords(t, file, size*len(want))
	}
	experiment := fmt.Sprintf("model: {base_model: minilm-l6, dropout: 0}\ntokenizer: {max_length: %d}\ntasks:\n  - "+
		"{name: task, %s}\n",
		longest, strings.ReplaceAll(options, "FILE", file))
	path := filepath.Join(t.TempDir(), "objective.yaml")
	if err := os.WriteFile(path, []byte(experiment), 0o644); err != nil {
		t.Fatal(err)
	}
	e, err := config.Read(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Load(t.Context(), e, dataset.Options{}, config.Train)
	if err != nil {
		t.Fatal(err)
	}
	built, err := New(data)
	if err != nil {
		t.Fatal(err)
	}
	salts := map[string]uint64{"score.weight": 1, "chain.transitions": 2, "chain.start": 3, "chain.end": 4}
	for _, w := range built.Model.Params.In("heads").In("task").In("task").All() {
		if salt := salts[strings.TrimPrefix(w.Name, "heads.task.task.")]; salt != 0 {
			start(w.Data, salt)
		}
	}

	plan := train.Plan{
		Options: multitask.Options{MaxSteps: len(want), Rate: 1e-4, WeightDecay: 0.01, WarmupSteps: 20, ClipNorm: 1},
	}
	training, err := train.New(built.Model, nil, plan)
	if err != nil {
		t.Fatal(err)
	}
	examples, worst := data.Groups[0].Examples[config.Train], 0.0
	for n := range want {
		step, err := training.Update([]train.Batch{{Group: 0, Examples: examples[n*size : (n+1)*size]}})
		if err != nil {
			t.Fatal(err)
		}
		d := math.Abs(step.Loss - want[n])
		worst = max(worst, d)
		if !(d <= 1e-3) {
			t.Errorf("loss of step %d = %.6f, want %.6f", n+1, step.Loss, want[n])
		}
	}
	t.Logf("largest difference of a loss: %.2g", worst)
}

// firstRecords writes the first n records of a file of the corpora, lines or in a conll file sentences, to a new file.
func firstRecords(t *testing.T, name string, n int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("JENGA_DATA"), name))
	if err != nil {
		t.Fatal(err)
	}
	end := "\n"
	if filepath.Ext(name) == ".conll" {
		end = "\n\n"
	}
	records := strings.SplitAfterN(string(text), end, n+1)
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, []byte(strings.Join(records[:n], "")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// start fills w with the initial values of the script's start for a salt.
func start(w []float32, salt uint64) {
	for k := range w {
		u := (uint64(k)*2654435761 + salt) % (1 << 32)
		w[k] = float32((float64(u)/(1<<32) - 0.5) * 0.07)
	}
}
