package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// jengaNLPFile has only keys of Jenga-NLP's files.
const jengaNLPFile = `
training:
  output_dir: ./results
  learning_rate: 2.0e-5
  batch_size: 8
  num_epochs: 4
  weight_decay: 0.01
  warmup_steps: 100
  eval_strategy: "epoch"
  save_strategy: "epoch"
  load_best_model_at_end: true
  metric_for_best_model: eval_overall_f1
  greater_is_better: true
  early_stopping_patience: 2
  device: cuda
  logging: {service: mlflow, experiment_name: calls, tracking_uri: "http://localhost:5000"}
project_name: Call Center
model:
  base_model: models/distil
  dropout: 0.1
  backbone_type: text
  fusion: {type: attention, hidden_size: 768}
tokenizer: {max_length: 256, padding: max_length, truncation: true, pad_token_id: 0}
tasks:
  - name: calls
    type: single_head_single_label_classification
    data_path: data/train.csv
    heads:
      - {name: tone, num_labels: 7, weight: 1.0}
      - {name: outcome, num_labels: 2, weight: 0.5}
    labels: null
    label_maps: {tone: {0: calm, 1: tense, 2: angry}}
  - name: names
    type: ner
    data_path: data/dev.csv
    labels: [O, B-PER, I-PER]
    label_maps: null
    heads: [{name: names, num_labels: 5, weight: 1.0}]
`

func TestJengaNLPFile(t *testing.T) {
	dir := supportDeskFolder(t)
	file := filepath.Join(sample.Folder(t, map[string]string{}), "calls.yaml")
	sample.Write(t, file, strings.NewReplacer("models/", dir+"/models/", "data/", dir+"/data/").Replace(jengaNLPFile))
	e := mustRead(t, file)
	if !e.JengaNLP {
		t.Error("it is not recognised as a file of Jenga-NLP")
	}
	calls := e.Tasks[0]
	if calls.Part.Type != "classification" || calls.Heads[1].Part.Type != "linear" ||
		calls.LabelMaps["tone"][2] != "angry" {
		t.Errorf("task calls is %+v", calls)
	}
	if want := (Split{Dev: 0.2, Seed: 42}); calls.Data.Split != want ||
		calls.Data.Path.Name != filepath.Join(dir, "data/train.csv") {
		t.Errorf("data %+v, want a split of %+v", calls.Data, want)
	}
	if e.Training.OutputDir != filepath.Join(filepath.Dir(file), "results") {
		t.Errorf("output_dir %q", e.Training.OutputDir)
	}
	var warnings []string
	for _, r := range e.Warnings {
		warnings = append(warnings, strings.TrimPrefix(r.String(), file))
	}
	want := []string{
		`:23:39: warning: padding has no effect: nothing is padded`,
		`:23:83: warning: pad_token_id has no effect: nothing is padded`,
		`:15:11: warning: device "cuda": training is on the processor: ` + encoders.ErrNoCUDA.Error(),
		`:16:12: warning: logging service "mlflow" is not supported: metrics go to the run folder's metrics.jsonl`,
		`:29:9: warning: task "calls": head "tone": num_labels 7 is ignored: label_maps has 3`,
		`:38:13: warning: task "names": head "names": num_labels 5 is ignored: the task's labels has 3`,
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
}

func TestIgnoredCheckpointOptionsGiveWarnings(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, test := range []struct {
		sets []string
		want []string
	}{
		{nil, nil},
		{[]string{"training.save_strategy=epoch", "training.load_best_model_at_end=true"}, nil},
		{[]string{"training.eval_strategy=steps", "training.save_strategy=steps"}, nil},
		{[]string{"training.eval_strategy=no"}, nil},
		{[]string{"training.eval_strategy=no", "training.save_strategy=no", "training.load_best_model_at_end=false"},
			nil},
		{[]string{"training.save_strategy=no"}, nil},
		{[]string{"training.eval_strategy=no", "training.save_strategy=epoch"}, nil},
		{[]string{"training.load_best_model_at_end=false"},
			[]string{"load_best_model_at_end: false has no effect: predictions are made by the best model; the " +
				"folder last has the last one"}},
	} {
		e := mustRead(t, file, test.sets...)
		var got []string
		for _, warning := range e.Warnings {
			_, what, _ := strings.Cut(strings.TrimPrefix(warning.String(), "argument set "), ": warning: ")
			got = append(got, what)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: warnings %q, want %q", test.sets, got, test.want)
		}

		var text strings.Builder // the file in the run folder gives the same warnings
		if err := e.Write(&text, filepath.Dir(file)); err != nil {
			t.Fatal(err)
		}
		again, err := decode(t.Context(), file, []byte(text.String()), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Warnings) != len(e.Warnings) {
			t.Errorf("%q: written and read again: warnings %q", test.sets, again.Warnings)
		}
	}
}

func TestAFileWithAnyOtherKeyIsNotOfJengaNLP(t *testing.T) {
	dir := supportDeskFolder(t)
	sample.Write(t, filepath.Join(dir, "calls.yaml"), jengaNLPFile)
	for _, set := range []string{"seed=42", "model.freeze=none", "model.fusion.scale=exact",
		"tasks.calls.heads.tone.type=linear", "tokenizer.max_length=9", "training.max_grad_norm=1"} {
		e, err := Read(t.Context(), filepath.Join(dir, "calls.yaml"), []string{set})
		switch {
		case set == "tokenizer.max_length=9":
			if err != nil || !e.JengaNLP {
				t.Errorf("with %s: %v; want a file of Jenga-NLP's", set, err)
			}
		case err == nil || !strings.Contains(err.Error(),
			`num_labels is 7, but label_maps has 3; leave one of them out`):
			t.Errorf("with %s: %v; want num_labels to be a mistake", set, err)
		}
	}
}
