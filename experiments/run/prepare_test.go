package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestTasksOnTheSameTextsShareExamples(t *testing.T) {
	data := `{"words": ["to", "Rome"], "label": "travel", "tags": ["O", "B-city"], "mood": "calm"}` + "\n" +
		`{"words": ["hi"], "label": "chat", "mood": "glad"}` + "\n"
	run, err := prepare(t, `
  - {name: slots, type: ner, data: {same_as: intent}}
  - {name: intent, type: classification, data: {train: a.jsonl, labels: {intent: label, mood: mood}}, heads: [{name: intent}, {name: mood}]}
`[1:], map[string]string{"a.jsonl": data})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(run.Model.Groups); got != 1 {
		t.Fatalf("%d groups, want 1", got)
	}
	first := run.Data.Groups[0].Examples[config.Train]
	if len(first) == 0 || len(first[0].Targets) != 3 {
		t.Fatalf("examples %v, want targets of three heads", first)
	}
	e := first[0]
	if labelOf(e.Targets[0]) != "travel" || labelOf(e.Targets[1]) != "calm" || tagsOf(e.Targets[2])[1] != "B-city" {
		t.Errorf("targets %+v", e.Targets)
	}
}

func TestATaskReadsTheFieldsThatTheOneItFollowsNames(t *testing.T) {
	const data = `{"q": "who flew", "c": "a kite flew", "answers": ["a kite"], "kind": "who", "tokens": ["who", "flew"], "pos": ["PRON", "VERB"]}
{"q": "what fell", "c": "a kite fell", "answers": ["a kite"], "kind": "what", "tokens": ["what", "fell"], "pos": ["PRON", "VERB"]}
`
	run, err := prepare(t, `
  - {name: who, type: question_answering, data: {train: a.jsonl, question: q, context: c}}
  - {name: kind, type: classification, data: {same_as: who, label: kind}}
  - {name: pos, type: tagging, data: {same_as: who, words: tokens, tags: pos}}
`[1:], map[string]string{"a.jsonl": data})
	if err != nil {
		t.Fatal(err)
	}
	e := run.Data.Groups[0].Examples[config.Train][0]
	if e.Text != "who flew" || e.Pair != "a kite flew" || len(e.Words) != 2 || len(e.Targets) != 3 ||
		labelOf(e.Targets[1]) != "who" || len(tagsOf(e.Targets[2])) != 2 {
		t.Errorf("example %+v, want what all three tasks ask of its question and context", e)
	}
}

func TestHeadsWithoutLabelsInDevAreNotEvaluated(t *testing.T) {
	const (
		tasks = "  - {name: mood, type: classification, data: {train: a.jsonl, dev: b.jsonl}}\n" +
			"  - {name: kinds, type: tagging, data: {same_as: mood}}\n"
		train = `{"text": "so good", "label": "good", "tags": ["R", "A"]}` + "\n" +
			`{"text": "so bad", "label": "bad", "tags": ["R", "A"]}` + "\n"
		half = `{"text": "so fine", "label": "good"}` + "\n"
		none = `{"text": "so fine"}` + "\n"
	)
	for _, test := range []struct{ name, dev, training, want string }{
		{"one head, with a warning", half, "{}",
			`warning: task "kinds": dev has no label for head "kinds", which is not evaluated`},
		{"no head, with a warning", none, "{}",
			"warning: no dev example is labelled: no evaluation; best/ will be the last checkpoint"},
		{"a metric that evaluations will not have", half, "{metric_for_best_model: eval_kinds_kinds_f1}", `exp.yaml:7:35: training: metric_for_best_model: no metric with labels in dev "eval_kinds_kinds_f1_macro"`},
		{"patience without a judgement", none, "{early_stopping_patience: 2}",
			"exp.yaml:7:37: training: early_stopping_patience: no dev example is labelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := prepare(t, tasks+"training: "+test.training+"\n",
				map[string]string{"a.jsonl": train, "b.jsonl": test.dev})
			message := ""
			if err != nil {
				message = err.Error()
			} else {
				message = strings.Join(plugin.Lines(run.Warnings), "\n")
			}
			if !strings.HasPrefix(message, test.want) {
				t.Errorf("the error or the warnings are %q, want %q", message, test.want)
			}
		})
	}

	// the best model is selected by the evaluated heads; without any, the last model is the best
	run, err := prepare(t, tasks, map[string]string{"a.jsonl": train, "b.jsonl": half})
	if err != nil {
		t.Fatal(err)
	}
	done, err := run.Train(context.Background(), "half", ignore)
	if err != nil {
		t.Fatal(err)
	}
	figures := report.Metrics(done.Best.Groups)
	if figures["eval_overall"] != figures["eval_mood_mood_accuracy"] ||
		figures["eval_loss"] != figures["eval_mood_loss"] {
		t.Errorf("figures %v, want the labelled head's alone", figures)
	}
	if runfolder.Exists("half/tasks/kinds") || !runfolder.Exists("half/tasks/mood") {
		t.Error("want a best model of each evaluated task, and of no other")
	}

	run, err = prepare(t, tasks, map[string]string{"a.jsonl": train, "b.jsonl": none})
	if err != nil {
		t.Fatal(err)
	}
	if done, err = run.Train(context.Background(), "none", ignore); err != nil {
		t.Fatal(err)
	}
	if len(done.Best.Groups) != 0 || runfolder.Exists("none/tasks") {
		t.Error("there is an evaluation without labels")
	}
	if got, err := json.Marshal(events.Line(done)); err != nil ||
		!strings.HasPrefix(string(got), `{"event":"done","best":null,`) {
		t.Errorf("the last event is %s", got)
	}
	if got, want := sample.Files(t, "none/best")["model.safetensors"],
		sample.Files(t, "none/last")["model.safetensors"]; got != want {
		t.Error("the best is not the last")
	}
}

// A head may have a loss for only part of the targets of its metrics: a metric that evaluations lack is an error before
// training.
func TestTheBestModelIsNotChosenByALossThatDevHasNot(t *testing.T) {
	const (
		odd = "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: b.jsonl}}\ntraining: " +
			"{metric_for_best_model: eval_loss}\n"
		both = `{"text": "so good", "label": "normal"}` + "\n" + `{"text": "so bad", "label": "odd"}` + "\n"
	)
	if _, err := prepare(t, odd, map[string]string{"a.jsonl": both, "b.jsonl": both}); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(t, odd, map[string]string{"a.jsonl": both,
		"b.jsonl": `{"text": "so bad", "label": "odd"}` + "\n"})
	if want := `metric_for_best_model: no metric with labels in dev "eval_loss"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestDevOfOneKindGivesAWarning(t *testing.T) {
	const (
		both = `{"text": "so good", "label": "normal"}` + "\n" + `{"text": "so bad", "label": "odd"}` + "\n"
		odd  = "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: b.jsonl}}\n"
	)
	for _, test := range []struct{ dev, defined, want string }{
		{"odd", "recall", `no normal text: auroc and specificity of head "odd" are undefined; it has no threshold of ` +
			"alarms"},
		{"normal", "specificity", `no anomaly: auroc, average_precision and recall of head "odd" are undefined`},
	} {
		files := map[string]string{"a.jsonl": both, "b.jsonl": `{"text": "so so", "label": "` + test.dev + `"}` + "\n"}

		// the main metric selects no model
		_, err := prepare(t, odd, files)
		if want := `training: metric_for_best_model: eval_overall has no value: task "odd": auroc of head "odd" is ` +
			"undefined on dev; want one that dev defines: eval_"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}

		run, err := prepare(t, odd+"training: {metric_for_best_model: eval_odd_odd_"+test.defined+"}\n", files)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`warning: task "odd": dev has ` + test.want,
			`warning: task "odd": auroc of head "odd" is undefined on dev, and is left out of means`} {
			if !slices.Contains(plugin.Lines(run.Warnings), want) {
				t.Errorf("warnings %q, want %q", run.Warnings, want)
			}
		}
	}
}

// A constant has no correlation: the error says why, and the field to look for.
func TestAConstantNumberIsToldWithTheMetricThatItLeavesUndefined(t *testing.T) {
	text := "text,value\n"
	for i := range 30 {
		text += fmt.Sprintf("so good %d,3\n", i)
	}
	_, err := prepare(t, "  - {name: size, type: regression, data: {path: a.csv, split: {dev: 0.2}}}\n",
		map[string]string{"a.csv": text})
	if err == nil || !strings.Contains(err.Error(), "is undefined on dev; want one that dev defines: eval_loss") ||
		!strings.Contains(err.Error(), "training numbers are 3: a constant is learned; data: {value: FIELD} names") {
		t.Errorf("error %v", err)
	}
}

func TestDevWithoutExamplesGivesAWarning(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {path: a.csv, split: {dev: 0.1}}}\n",
		map[string]string{"a.csv": "text,label\nso good,good\nso bad,bad\n"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "warning: dev has no examples: no evaluation; best/ will be the last checkpoint"
	if !slices.Contains(plugin.Lines(run.Warnings), want) {
		t.Errorf("warnings %q, want %q", run.Warnings, want)
	}
}

func TestUntunedHeadsGiveAWarning(t *testing.T) {
	const (
		data = `{"text": "so good", "label": "normal", "labels": ["good"]}` + "\n" +
			`{"text": "so bad", "label": "odd", "labels": []}` + "\n"
		half       = `{"text": "so good", "labels": ["good"]}` + "\n"
		none       = `{"text": "so good"}` + "\n"
		experiment = "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: dev.jsonl}}\n" +
			"  - {name: moods, type: multi_label, data: {train: a.jsonl, dev: dev.jsonl}}\n"
	)
	odd := func(cause string) string {
		return `warning: task "odd": no evaluation sets the threshold of head "odd" (` + cause +
			"): it predicts distances and raises no alarm"
	}
	moods := func(cause string) string {
		return `warning: task "moods": no evaluation tunes head "moods" (` + cause + "): its labels hold from its threshold on"
	}
	const never, unlabelled = "eval_strategy: no", "dev has no label for it"
	for _, test := range []struct {
		strategy, dev string
		want          []string
	}{
		{"no", data, []string{odd(never), moods(never)}},
		{"epoch", data, nil},
		{"epoch", half, []string{odd(unlabelled)}},
		{"epoch", none, []string{odd(unlabelled), moods(unlabelled)}},
	} {
		run, err := prepare(t, experiment, map[string]string{"a.jsonl": data, "dev.jsonl": test.dev},
			"training.eval_strategy="+test.strategy)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(plugin.Lines(run.Warnings),
			func(warning string) bool { return !strings.Contains(warning, ": no evaluation ") })
		if !slices.Equal(got, test.want) {
			t.Errorf("eval_strategy: %s, dev %s: warnings %q, want %q", test.strategy, test.dev, got, test.want)
		}
	}
}

func TestBF16OfAFrozenEncoderGivesAWarning(t *testing.T) {
	for freeze, want := range map[string]bool{"all": true, "none": false} {
		e := mustRead(t, sample.Small(t, ""), "model.freeze="+freeze)
		e.Training.BFloat16 = true // which Read rejects if the processor lacks it
		run, err := ready(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		warning := func(s string) bool { return strings.Contains(s, "precision: bf16 has no effect") }
		if slices.ContainsFunc(plugin.Lines(run.Warnings), warning) != want {
			t.Errorf("freeze: %s: warnings %q", freeze, run.Warnings)
		}
	}
}

func TestAWeightingOfOneGroupAStepGivesAWarning(t *testing.T) {
	files := map[string]string{
		"a.jsonl": `{"text": "good", "label": "a"}` + "\n" + `{"text": "bad", "label": "b"}` + "\n",
	}
	const experiment = "  - {name: one, type: classification, data: {train: a.jsonl}}\n" +
		"  - {name: two, type: classification, data: {train: a.jsonl}}\n"
	for sets, want := range map[string]bool{
		"{type: proportional, groups: 1}": true, "{type: proportional, groups: 2}": false, "proportional": false,
	} {
		for steps, want := range map[string]bool{"1": want, "2": false} {
			run, err := prepare(t, experiment, files, "training.eval_strategy=no", "training.weighting=pcgrad",
				"training.sampling="+sets, "training.gradient_accumulation_steps="+steps)
			if err != nil {
				t.Fatal(err)
			}
			warning := func(s string) bool { return strings.Contains(s, "draws one group of tasks a step") }
			if slices.ContainsFunc(plugin.Lines(run.Warnings), warning) != want {
				t.Errorf("%s, %s batches a step: warnings %q", sets, steps, run.Warnings)
			}
		}
	}
}

func labelOf(t corpus.Target) string { return outputs.As[outputs.LabelTarget](t).Label }

func tagsOf(t corpus.Target) []string { return outputs.As[outputs.TagsTarget](t).Tags }
