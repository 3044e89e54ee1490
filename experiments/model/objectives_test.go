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
	"github.com/jenga-nlp/jenga/nn"
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
	const minilm = "{base_model: minilm-l6, dropout: 0}"
	const twoLayers = "{encoder: {from: minilm-l6, layers: [0, 1]}, dropout: 0}"
	for name, o := range map[string]objective{
		"one_label": {minilm, "trec6/TREC.train.all", 8, 64, `type: classification, data: {train: FILE, dev: FILE, format: csv, header: false, delimiter: " ", columns: [label, text], encoding: latin1}, heads: [{name: one_label}]`},
		"labels":    {twoLayers, "goemotions/train.tsv", 8, 64, `type: multi_label, data: {train: FILE, dev: FILE, quote: none, header: false, columns: [text, labels]}, heads: [{name: labels}]`},
		"tags":      {twoLayers, "wnut17/wnut17train.conll", 8, 64, `type: ner, data: {train: FILE, dev: FILE, format: conll}, heads: [{name: tags}, {name: crf, type: crf}]`},
		"number":    {twoLayers, "stsb/sts-train.csv", 8, 64, `type: regression, data: {train: FILE, dev: FILE, format: tsv, quote: none, header: false, columns: [_, _, _, _, value, text, pair]}, heads: [{name: number, type: regression, scale: standard}]`},
		"span": {twoLayers, "xquad_en/xquad.en.json", 4, 96, `type: question_answering,
    long: truncate, data: {train: FILE, dev: FILE}, heads: [{name: span}]`},
	} {
		t.Run(name, func(t *testing.T) { followObjective(t, o, want) })
	}
}

// objective is a task, with FILE in place of its file, on a model, in batches of size texts of at most longest tokens.
type objective struct {
	model, file   string
	size, longest int
	task          string
}

// followObjective trains on the examples in the order of the file. want are the losses of heads, by their names.
func followObjective(t *testing.T, o objective, want map[string][]float64) {
	const steps = 200
	file := o.file
	if filepath.Ext(file) != ".json" {
		file = firstRecords(t, file, o.size*steps)
	}
	experiment := fmt.Sprintf("model: %s\ntokenizer: {max_length: %d}\ntasks:\n  - {name: task, %s}\n", o.model,
		o.longest, strings.ReplaceAll(o.task, "FILE", file))
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
	startHeads(built.Model.Params.In("heads").In("task"))

	plan := train.Plan{
		Options: multitask.Options{MaxSteps: steps, Rate: 1e-4, WeightDecay: 0.01, WarmupSteps: 20, ClipNorm: 1},
	}
	training, err := train.New(built.Model, nil, plan)
	if err != nil {
		t.Fatal(err)
	}
	examples, worst := data.Groups[0].Examples[config.Train], 0.0
	for n := range steps {
		step, err := training.Update([]train.Batch{{Group: 0, Examples: examples[n*o.size : (n+1)*o.size]}})
		if err != nil {
			t.Fatal(err)
		}
		if len(step.Losses) != strings.Count(o.task, "{name:") {
			t.Fatalf("losses of %d heads in step %d: %v", len(step.Losses), n+1, step.Losses)
		}
		for _, got := range step.Losses {
			if len(want[got.Head]) != steps {
				t.Fatalf("%d losses of %s, want %d", len(want[got.Head]), got.Head, steps)
			}
			d := math.Abs(got.Mean() - want[got.Head][n])
			worst = max(worst, d)
			if !(d <= 1e-4) {
				t.Errorf("loss of %s in step %d = %.6f, want %.6f", got.Head, n+1, got.Mean(), want[got.Head][n])
			}
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

// startHeads gives the parameters of a task's heads the script's initial values.
func startHeads(p nn.Params) {
	salts := map[string]uint64{"score.weight": 1, "chain.transitions": 2, "chain.start": 3, "chain.end": 4}
	for _, w := range p.All() {
		_, name, _ := strings.Cut(strings.TrimPrefix(w.Name, "heads.task."), ".") // after that of the head
		if salt := salts[name]; salt != 0 {
			start(w.Data, salt)
		}
	}
}

// start fills w with the initial values of the script's start for a salt.
func start(w []float32, salt uint64) {
	for k := range w {
		u := (uint64(k)*2654435761 + salt) % (1 << 32)
		w[k] = float32((float64(u)/(1<<32) - 0.5) * 0.07)
	}
}
