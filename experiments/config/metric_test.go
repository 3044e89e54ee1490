package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// The metrics that a file may name for the best model are exactly those that evaluations have.
func TestMetricsAreThoseOfEvaluations(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, sets := range [][]string{
		nil,
		{"tasks.slots.data={train: data/train.csv, tags: slots}"},
		{"tasks=[{name: words, type: tagging, data: {train: data/train.csv}}]",
			"training.metric_for_best_model=eval_words_loss"},
		{"tasks=[{name: mood, type: classification, data: {train: data/train.csv}}, {name: odd, type: anomaly, data: " +
			"{same_as: mood}, heads: [{name: pattern, type: attention_pattern}]}]",
			"training.metric_for_best_model=eval_odd_pattern_auroc"},
		{"tasks=[{name: mood, type: classification, data: {train: data/train.csv}}, {name: much, type: regression, " +
			"data: {same_as: mood}}]", "training.metric_for_best_model=eval_much_much_mae"},
	} {
		t.Chdir(filepath.Dir(file))
		e := mustRead(t, file, sets...)
		var groups []multitask.GroupMetrics
		for _, texts := range e.Groups() {
			groups = append(groups, emptyMetrics(t, e, texts))
		}
		d := decoding{e: e}
		got := slices.Sorted(slices.Values(d.metrics().names))
		want := slices.Sorted(maps.Keys(report.Metrics(groups)))
		if !slices.Equal(got, want) || !d.mistakes.Empty() {
			t.Errorf("with %q a file may name\n%q\nan evaluation has\n%q", sets, got, want)
		}
	}
}

func emptyMetrics(t *testing.T, e *Experiment, numbers []int) multitask.GroupMetrics {
	t.Helper()
	var group multitask.GroupMetrics
	exact := 0
	for _, number := range numbers {
		task := e.Tasks[number]
		part, err := task.Part.Build(tasks.Env{Name: task.Name, Heads: task.HeadNames(), Split: splitBlanks})
		if err != nil {
			t.Fatal(err)
		}
		s := multitask.TaskMetrics{Task: task.Name}
		for _, head := range task.Heads {
			m := multitask.HeadMetrics{Head: head.Name, Metrics: part.Evaluate(nil, nil)}
			if head.Part.Type != "attention_pattern" { // which has no loss
				m.Loss.Units = 1
			}
			s.Heads = append(s.Heads, m)
			// whose predictions are numbers, neither right nor wrong
			if task.Part.Type != "anomaly" && task.Part.Type != "regression" {
				exact++
			}
		}
		group.Tasks = append(group.Tasks, s)
	}
	if exact > 1 {
		group.AllRight = new(float64)
	}
	return group
}

// Files of Jenga-NLP, and those written before metrics were named after their averages, say f1.
func TestAMetricsFormerNameSelectsTheSame(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	t.Chdir(filepath.Dir(file))
	const all = "tasks=[{name: mood, type: classification, data: {train: data/train.csv}}, " +
		"{name: many, type: multi_label, data: {same_as: mood}}, {name: words, type: ner, data: {same_as: mood}}]"
	for former, want := range map[string]string{
		"eval_mood_mood_f1":         "eval_mood_mood_f1_macro",
		"eval_mood_mood_precision":  "eval_mood_mood_precision_macro",
		"eval_mood_mood_f1_micro":   "eval_mood_mood_f1_micro",
		"eval_many_many_f1":         "eval_many_many_f1_micro",
		"eval_many_many_f1_macro":   "eval_many_many_f1_macro",
		"eval_words_words_f1":       "eval_words_words_span_f1",
		"eval_words_words_f1_macro": "eval_words_words_span_f1_macro",
		"eval_overall_f1":           "eval_overall_f1",
	} {
		e := mustRead(t, file, all, "training.metric_for_best_model="+former)
		if got := e.Training.MetricForBestModel; got != want || !e.Training.GreaterIsBetter {
			t.Errorf("%s selects %s, greater is better: %v; want %s", former, got, e.Training.GreaterIsBetter, want)
		}
	}
}

func TestTheBestModelByWeightsOfTasksAndWhenItIsSaved(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	e := mustRead(t, file)
	first := e.Tasks[0].Name
	weighted := mustRead(t, file, "training.metric_for_best_model={"+first+": 2}").Training
	if weighted.MetricForBestModel != report.Weighted || weighted.MetricWeights[first] != 2 ||
		!weighted.GreaterIsBetter {
		t.Errorf("by weights: %+v", weighted)
	}
	for set, want := range map[string]string{
		"training.metric_for_best_model={sales: 1}": `no task "sales"; available: intent, slots`,
		"training.metric_for_best_model={" + first + ": 0}": "weight of task \"" + first +
			"\": want a number above 0, at most 1e+100, have 0",
		"training.metric_for_best_model={" + first + ": much}": "want a number above 0, " +
			"at most 1e+100, have text \"much\"",
		"training.metric_for_best_model={}":                  "want a metric's name or {TASK: WEIGHT}",
		"training.metric_for_best_model=[a]":                 "want a metric's name or {TASK: WEIGHT}, have a list",
		"training.save_steps=5":                              "save_steps: no effect with save_strategy: epoch",
		"training.save_minutes=5":                            "save_minutes: no effect with save_strategy: epoch",
		"training.save_strategy=hours":                       "save_strategy: want ",
		"training={save_strategy: no, save_total_limit: 3}":  "save_total_limit: no effect with save_strategy: no",
		"training={save_strategy: minutes, save_minutes: 0}": "save_minutes: want a number above 0",
		"training={save_strategy: steps, save_steps: 0}":     "save_steps: want a whole number of at least 1",
	} {
		if _, err := Read(file, []string{set}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: %v, want %s", set, err, want)
		}
	}
}

// The file of a run has greater_is_better only where it contradicts the metric: with another metric by --set the
// direction is that one's.
func TestTheDirectionOfTheMetricIsItsOwn(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, c := range []struct {
		sets    []string
		written bool
	}{
		{nil, false},
		{[]string{"training.greater_is_better=true"}, false},
		{[]string{"training.metric_for_best_model=eval_loss"}, false},
		{[]string{"training.metric_for_best_model=eval_loss", "training.greater_is_better=true"}, true},
	} {
		e := mustRead(t, file, append(c.sets, "training.output_dir=null")...)
		path := filepath.Join(filepath.Dir(file), "again.yaml")
		var text strings.Builder
		if err := e.Write(&text, filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "greater_is_better"); got != c.written {
			t.Errorf("with %q greater_is_better is written: %v, want %v", c.sets, got, c.written)
		}
		sample.Write(t, path, text.String())
		if got := mustRead(t, path).Training.GreaterIsBetter; got != e.Training.GreaterIsBetter {
			t.Errorf("with %q the file is read with %v, want %v", c.sets, got, e.Training.GreaterIsBetter)
		}
		other := mustRead(t, path, "training.metric_for_best_model=eval_loss").Training.GreaterIsBetter
		if other != c.written {
			t.Errorf("with %q and then eval_loss: greater is better %v, want %v", c.sets, other, c.written)
		}
	}
}
