package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/tasks"
)

// scratchFile is a small experiment on data/train.jsonl; options are added to its head, and training to training.
func scratchFile(t *testing.T, head, training string) string {
	t.Helper()
	dir := sample.Folder(t, map[string]string{"exp.yaml": `
model: {encoder: {type: transformer}}
tasks: [{name: mood, type: classification, data: {train: train.jsonl}, heads: [{name: mood` + head + `}]}]
training: {` + training + `}
`}, "train.jsonl")
	return filepath.Join(dir, "exp.yaml")
}

// All weightings multiply by a head's weight (see TestWeightZeroHasFactorZero in multitask).
func TestWeightsOfZeroAreAMistakeUnderEachWeighting(t *testing.T) {
	for _, name := range weightings.Registry().Names() {
		_, err := Read(t.Context(), scratchFile(t, ", weight: 0", "weighting: "+name), nil)
		if want := "the weights of all heads are 0"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weighting %s: %v, want %q", name, err, want)
		}
	}
}

func TestTrainingOptionsOutOfRange(t *testing.T) {
	for option, want := range map[string]string{
		"max_grad_norm: -1":                   "max_grad_norm: want a number of at least 0, have -1",
		"warmup_ratio: 1.5":                   "warmup_ratio: want a number in [0, 1], have 1.5",
		"warmup_ratio: -0.1":                  "warmup_ratio: want a number in [0, 1], have -0.1",
		"eval_strategy: steps, eval_steps: 0": "eval_steps: want a whole number of at least 1, have 0",
		"learning_rate: 0":                    "learning_rate: want a number above 0, have 0",
		"weight_decay: -1":                    "weight_decay: want a number of at least 0, have -1",
		"batch_size: 0":                       "batch_size: want a whole number of at least 1, have 0",
		"batch_tokens: -1":                    "batch_tokens: want a whole number of at least 0, have -1",
		"max_steps: -1":                       "max_steps: want a whole number of at least 0, have -1",
		"warmup_steps: -1":                    "warmup_steps: want a whole number of at least 0, have -1",
		"gradient_accumulation_steps: 0":      "gradient_accumulation_steps: want a whole number of at least 1, have 0",
		"early_stopping_patience: -1":         "early_stopping_patience: want a whole number of at least 0, have -1",
		"logging_steps: 0":                    "logging_steps: want a whole number of at least 1, have 0",
		"cache_memory: 16777217":              "cache_memory: want a whole number in [0, 16777216], have 16777217",
		"precision: float16":                  "precision: want float32 or bf16, have \"float16\"",
	} {
		_, err := Read(t.Context(), scratchFile(t, "", option), nil)
		if err == nil || !strings.HasSuffix(err.Error(), "training: "+want) {
			t.Errorf("%s: %v, want %s", option, err, want)
		}
	}
}

// processor replaces the check of the processor: err is nil if it multiplies bfloat16.
func processor(t *testing.T, err error) {
	t.Helper()
	before := checkBFloat16
	checkBFloat16 = func() error { return err }
	t.Cleanup(func() { checkBFloat16 = before })
}

func TestBF16WhereTheProcessorCannotIsAnErrorWithItsPlace(t *testing.T) {
	processor(t, errors.New("this processor cannot"))
	path := sample.Small(t, "")
	_, err := Read(t.Context(), path, []string{"training.precision=bf16"})
	want := "argument set training.precision=bf16: training: precision: bf16: this processor cannot; leave precision out, " +
		"or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "batch_size: 8", "precision: bf16", 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Read(t.Context(), path, nil)
	want = path + ":13:46: training: precision: bf16: this processor cannot; leave precision out, or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if _, err := ReadTrained(path); err != nil { // a run trained in bf16 predicts on every processor
		t.Error(err)
	}
	if _, err := Read(t.Context(), path, []string{"training.precision=float32"}); err != nil {
		t.Error(err)
	}
}

// A name that no task has is reported with the other mistakes, before data is read.
func TestOptionsOfTheSamplerNameTasks(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for sampling, want := range map[string]string{
		"{type: weights, weights: {intnt: 2}}":             `no task "intnt"; did you mean "intent"?`,
		"{type: dynamic, targets: {intnt: 0.5}}":           `no task "intnt"; did you mean "intent"?`,
		"{type: weights, weights: {intent: 2, slots: 1}}":  `tasks "intent" and "slots" read the same texts`,
		"{type: uniform, groups: 7}":                       "groups is 7; want at most as many",
		"{type: weights, weights: {intent: 2}, groups: 1}": "",
	} {
		_, err := Read(t.Context(), file, []string{"training.batch_size=0", "training.sampling=" + sampling})
		for _, want := range []string{want, "batch_size: want a whole number"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", sampling, err, want)
			}
		}
	}

	// a value of a wrong kind is one mistake
	_, err := Read(t.Context(), file, []string{"training.sampling={type: dynamic, targets: {intent: 5}}"})
	if err == nil || strings.Count(err.Error(), "want a number") != 1 || !strings.Contains(err.Error(), "have 5") {
		t.Errorf("%v, want one mistake of targets", err)
	}

	// without groups of tasks there is nothing to compare with
	for _, set := range []string{"tasks.slots.name=intent", "tasks.slots.name=null",
		"tasks.intent.data={same_as: slots}"} {
		_, err := Read(t.Context(), file, []string{set, "training.sampling={type: weights, weights: {x: 1}}"})
		if err == nil || strings.Contains(err.Error(), "weights") {
			t.Errorf("with %s: %v", set, err)
		}
	}
}

// TestAnotherStrategyBySet replaces the strategy of a file whose options it gives no effect, as a run that is resumed
// may.
func TestAnotherStrategyBySet(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, c := range []struct{ was, now string }{
		{"training={save_strategy: steps, save_steps: 5}", "training.save_strategy=epoch"},
		{"training={save_strategy: minutes, save_minutes: 5, save_total_limit: 3}", "training.save_strategy=no"},
		{"training={eval_strategy: steps, eval_steps: 5}", "training.eval_strategy=epoch"},
		{"training={eval_strategy: steps, eval_steps: 5, early_stopping_patience: 2}", "training.eval_strategy=no"},
	} {
		path := file
		for _, set := range []string{c.was, c.now} {
			e := mustRead(t, path, set)
			path = filepath.Join(filepath.Dir(file), "run.yaml")
			var text strings.Builder
			if err := e.Write(&text, filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			sample.Write(t, path, text.String())
		}
		got := mustRead(t, path).Training
		if !slices.Contains([]string{"training.save_strategy=" + got.SaveStrategy,
			"training.eval_strategy=" + got.EvalStrategy}, c.now) {
			t.Errorf("the file after %s has %q and %q", c.now, got.SaveStrategy, got.EvalStrategy)
		}
	}
}

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
		part, err := task.Part.Build(tasks.Env{Name: task.Name, Heads: task.HeadNames(),
			Split: corpus.Splitter(corpus.SplitWhitespace, nil)})
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

// Files of Jenga-NLP say f1, precision and recall, without the average.
func TestAMetricHasItsNameOfJengaNLPToo(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	t.Chdir(filepath.Dir(file))
	const all = "tasks=[{name: mood, type: classification, data: {train: data/train.csv}}, " +
		"{name: many, type: multi_label, data: {same_as: mood}}, {name: words, type: ner, data: {same_as: mood}}]"
	for short, want := range map[string]string{
		"eval_mood_mood_f1":        "eval_mood_mood_f1_macro",
		"eval_mood_mood_precision": "eval_mood_mood_precision_macro",
		"eval_mood_mood_f1_micro":  "eval_mood_mood_f1_micro",
		"eval_many_many_f1":        "eval_many_many_f1_micro",
		"eval_many_many_recall":    "eval_many_many_recall_micro",
		"eval_many_many_f1_macro":  "eval_many_many_f1_macro",
		"eval_words_words_f1":      "eval_words_words_span_f1",
		"eval_words_words_recall":  "eval_words_words_span_recall",
		"eval_overall_f1":          "eval_overall_f1",
	} {
		e := mustRead(t, file, all, "training.metric_for_best_model="+short)
		if got := e.Training.Selection.Metric; got != want || !e.Training.Selection.Higher {
			t.Errorf("%s selects %s, greater is better: %v; want %s", short, got, e.Training.Selection.Higher, want)
		}
	}
}

func TestTheBestModelByWeightsOfTasksAndWhenItIsSaved(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	e := mustRead(t, file)
	first := e.Tasks[0].Name
	weighted := mustRead(t, file, "training.metric_for_best_model={"+first+": 2}").Training
	if weighted.Selection.Metric != report.Weighted || weighted.Selection.Weights[first] != 2 ||
		!weighted.Selection.Higher {
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
		if _, err := Read(t.Context(), file, []string{set}); err == nil || !strings.Contains(err.Error(), want) {
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
		if got := mustRead(t, path).Training.Selection.Higher; got != e.Training.Selection.Higher {
			t.Errorf("with %q the file is read with %v, want %v", c.sets, got, e.Training.Selection.Higher)
		}
		other := mustRead(t, path, "training.metric_for_best_model=eval_loss").Training.Selection.Higher
		if other != c.written {
			t.Errorf("with %q and then eval_loss: greater is better %v, want %v", c.sets, other, c.written)
		}
	}
}
