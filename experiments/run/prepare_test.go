package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestRemarks(t *testing.T) {
	const train = `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: b.jsonl, split: {test: 1}}}\n",
		map[string]string{"a.jsonl": train + train, "b.jsonl": train + `{"text": "so fair", "label": "fair"}` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(run.Remarks, "\n")
	for _, want := range []string{
		`task "mood" has no test file: 1 of the 4 examples of a.jsonl are taken (seed `,
		`task "mood": dev has label "fair" 1 times, which train has not: it is judged as wrong`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	if got, want := len(run.Data.Groups[0].Examples[config.Dev]), 3; got != want {
		t.Errorf("%d dev examples, want %d", got, want)
	}
}

func TestTasksOnTheSameTextsShareExamples(t *testing.T) {
	data := `{"words": ["to", "Rome"], "label": "travel", "tags": ["O", "B-city"], "mood": "calm"}` + "\n" + `{"words": ["hi"], "label": "chat", "mood": "glad"}` + "\n"
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

func TestWhatDevIsNotLabelledForIsNotJudged(t *testing.T) {
	const (
		tasks = "  - {name: mood, type: classification, data: {train: a.jsonl, dev: b.jsonl}}\n" +
			"  - {name: kinds, type: tagging, data: {same_as: mood}}\n"
		train = `{"text": "so good", "label": "good", "tags": ["R", "A"]}` + "\n" + `{"text": "so bad", "label": "bad", "tags": ["R", "A"]}` + "\n"
		half  = `{"text": "so fine", "label": "good"}` + "\n"
		none  = `{"text": "so fine"}` + "\n"
	)
	for _, test := range []struct{ name, dev, training, want string }{
		{"one head, remarked on", half, "{}", `task "kinds": dev has no label for head "kinds", which is not judged`},
		{"no head, remarked on", none, "{}", "no dev example is labelled: nothing is judged, and best/ is the last model"},
		{"a metric that evaluations will not have", half, "{metric_for_best_model: eval_kinds_kinds_f1}", `exp.yaml:7:35: training: metric_for_best_model: no metric with labels in dev "eval_kinds_kinds_f1"`},
		{"patience without a judgement", none, "{early_stopping_patience: 2}", "exp.yaml:7:37: training: early_stopping_patience: no dev example is labelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := prepare(t, tasks+"training: "+test.training+"\n", map[string]string{"a.jsonl": train, "b.jsonl": test.dev})
			said := ""
			if err != nil {
				said = err.Error()
			} else {
				said = strings.Join(run.Remarks, "\n")
			}
			if !strings.HasPrefix(said, test.want) {
				t.Errorf("Prepare says %q, want %q", said, test.want)
			}
		})
	}

	// the best is chosen by what is judged, and of nothing the last is the best
	run, err := prepare(t, tasks, map[string]string{"a.jsonl": train, "b.jsonl": half})
	if err != nil {
		t.Fatal(err)
	}
	done, err := run.Train(context.Background(), "half", func(any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	figures := report.Figures(done.Best.Groups)
	if figures["eval_overall"] != figures["eval_mood_mood_accuracy"] || figures["eval_loss"] != figures["eval_mood_loss"] {
		t.Errorf("figures %v, want the labelled head's alone", figures)
	}
	if runfolder.Exists("half/tasks/kinds") || !runfolder.Exists("half/tasks/mood") {
		t.Error("a task that is not judged has a best model of its own, or one that is has none")
	}

	run, err = prepare(t, tasks, map[string]string{"a.jsonl": train, "b.jsonl": none})
	if err != nil {
		t.Fatal(err)
	}
	if done, err = run.Train(context.Background(), "none", func(any) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if len(done.Best.Groups) != 0 || runfolder.Exists("none/tasks") {
		t.Error("there is an evaluation of nothing")
	}
	if got, err := json.Marshal(report.Line(done)); err != nil || !strings.HasPrefix(string(got), `{"event":"done","best":null,`) {
		t.Errorf("the last event is %s", got)
	}
	if got, want := sample.Files(t, "none/best")["model.safetensors"], sample.Files(t, "none/last")["model.safetensors"]; got != want {
		t.Error("the best is not the last")
	}
}

// A head has a loss for some of what it is judged by: a metric is refused before training where evaluations lack it.
func TestTheBestModelIsNotChosenByALossThatDevHasNot(t *testing.T) {
	const (
		odd  = "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: b.jsonl}}\ntraining: {metric_for_best_model: eval_loss}\n"
		both = `{"text": "so good", "label": "normal"}` + "\n" + `{"text": "so bad", "label": "odd"}` + "\n"
	)
	if _, err := prepare(t, odd, map[string]string{"a.jsonl": both, "b.jsonl": both}); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(t, odd, map[string]string{"a.jsonl": both, "b.jsonl": `{"text": "so bad", "label": "odd"}` + "\n"})
	if want := `metric_for_best_model: no metric with labels in dev "eval_loss"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAnEqualGoldNumberHasNoDeviation(t *testing.T) {
	tenth := `{"text": "so good", "value": 0.1}` + "\n"
	run, err := prepare(t, "  - {name: much, type: regression, data: {train: a.jsonl}, heads: [{type: regression, scale: standard}]}\n", map[string]string{"a.jsonl": tenth + tenth + tenth})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range run.Model.Params.All() {
		if strings.HasSuffix(w.Name, "unit") && !slices.Equal(w.Data, []float32{0.1, 1}) {
			t.Errorf("numbers are counted from and in %v, want 0.1 and 1", w.Data)
		}
	}
}

func TestAnswersBeyondTheWindowsAreRemarkedOn(t *testing.T) {
	question := `{"question": "who", "context": "it was a very long day with rain and wind and sun and then Zoe", "answers": ["Zoe"]}` + "\n"
	for long, want := range map[string]bool{"truncate": true, "windows": false} {
		run, err := prepare(t, "  - {name: who, type: question_answering, long: "+long+", data: {train: a.jsonl}}\n", map[string]string{"a.jsonl": strings.Repeat(question, 3)}, "tokenizer.max_length=16")
		if err != nil {
			t.Fatal(err)
		}
		const said = `task "who": 3 of train's answers are not within 16 tokens of their text, and are learned as none: a larger max_length, or long: windows, holds more`
		if got := slices.Contains(run.Remarks, said); got != want {
			t.Errorf("long: %s: remarks %q, want this one %v", long, run.Remarks, want)
		}
	}
}

func TestTextsThatAreCutAreCounted(t *testing.T) {
	text := func(words int) string { return `{"text": "` + strings.Repeat("a ", words) + `", "label": "x"}` + "\n" }
	data := text(10) + text(3) + text(6) + `{"text": "b", "label": "y"}` + "\n" // 12, 5, 8 and 3 tokens
	for long, want := range map[string]bool{"truncate": true, "windows": false} {
		run, err := prepare(t, "  - {name: mood, type: classification, long: "+long+", data: {train: a.jsonl}}\n", map[string]string{"a.jsonl": data}, "tokenizer.max_length=8")
		if err != nil {
			t.Fatal(err)
		}
		const said = `task "mood": 1 of 4 texts of train have more than 8 tokens and lose their end: a larger tokenizer.max_length, or long: windows, keeps it`
		if got := slices.Contains(run.Remarks, said); got != want {
			t.Errorf("long: %s: remarks %q, want this one %v", long, run.Remarks, want)
		}
	}
}

func TestDevOfOneKindIsRemarkedOn(t *testing.T) {
	const both = `{"text": "so good", "label": "normal"}` + "\n" + `{"text": "so bad", "label": "odd"}` + "\n"
	for dev, want := range map[string]string{
		`{"text": "so bad", "label": "odd"}`:     `task "odd": dev has no normal text: auroc and specificity of head "odd" are 0; it has no threshold of alarms`,
		`{"text": "so good", "label": "normal"}`: `task "odd": dev has no anomaly: auroc, average_precision and recall of head "odd" are 0`,
	} {
		run, err := prepare(t, "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: b.jsonl}}\n", map[string]string{"a.jsonl": both, "b.jsonl": dev + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(run.Remarks, want) {
			t.Errorf("remarks %q, want %q", run.Remarks, want)
		}
	}
}

func TestQuestionsWithoutAnswersAreRemarkedOn(t *testing.T) {
	for cell, want := range map[string]bool{"": true, "[]": false} {
		run, err := prepare(t, "  - {name: who, type: question_answering, data: {train: a.csv}, heads: [{name: who, no_answer: true}]}\n",
			map[string]string{"a.csv": "question,context,answers\nwho,so good,good\nwho,so bad," + cell + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		const remark = `task "who": 1 of 2 training questions have no answers, and teach nothing: an empty list, [], says that the context has none`
		if got := slices.Contains(run.Remarks, remark); got != want {
			t.Errorf("answers %q: remarks %q, want %q: %v", cell, run.Remarks, remark, want)
		}
	}
}

func TestAMissingFieldIsNamedWithThoseThereAre(t *testing.T) {
	_, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.csv}}\n", map[string]string{"a.csv": "text, label\nso good,good\n"})
	if want := `task "mood": head "mood" has no label in its training data, a.csv: data: {label: FIELD} names the field that holds it, there is " label", text`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestWhatNoEvaluationTunesIsRemarkedOn(t *testing.T) {
	const data = `{"text": "so good", "label": "normal", "labels": ["good"]}` + "\n" + `{"text": "so bad", "label": "odd", "labels": []}` + "\n"
	experiment := "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: a.jsonl}}\n  - {name: moods, type: multi_label, data: {train: b.jsonl, dev: b.jsonl, label: labels}}\n"
	for strategy, want := range map[string]int{"no": 2, "epoch": 0} {
		run, err := prepare(t, experiment, map[string]string{"a.jsonl": data, "b.jsonl": data}, "training.eval_strategy="+strategy)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.DeleteFunc(run.Remarks, func(remark string) bool { return !strings.Contains(remark, "(eval_strategy: no)") })
		if len(said) != want {
			t.Errorf("eval_strategy: %s: remarks %q", strategy, said)
		}
	}
}

func TestWhatChangesNothingIsRemarkedOn(t *testing.T) {
	for _, test := range []struct {
		task string
		sets []string
		want string
	}{
		{"", []string{"training.recompute=true"}, ""},
		{"", []string{"training.recompute=true", "model.freeze=all"}, "training: recompute has no effect: a frozen encoder keeps nothing of a batch"},
		{"", []string{"training.warmup_steps=2", "training.warmup_ratio=0.1"}, "training: warmup_ratio has no effect: warmup_steps: 2 overrules it"},
		{"", []string{"model.freeze=embeddings", "model.lora.r=2"}, "model: freeze: embeddings has no effect: with lora nothing else of the encoder learns"},
		{"", []string{"model.freeze=embeddings"}, "model: freeze: embeddings leaves random weights as they are"},
		{"", []string{"model.freeze=1"}, "model: freeze: 1 leaves random weights as they are"},
		{"", []string{"model.lora.r=2"}, "model: lora leaves random weights as they are"},
		{"", []string{"model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 8}"}, ""},
		{"", []string{"training.recompute=true", "model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 8}"}, `training: recompute has no effect: encoder "bilstm" keeps all of a batch`},
		{", label_maps: {mood: {0: good, 1: bad, 2: awful}}", []string{"seed=1"}, `task "mood": head "mood": label_maps: no training text has label 2, "awful"`},
	} {
		run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl}"+test.task+"}\n",
			map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"}, test.sets...)
		if err != nil {
			t.Fatalf("%v: %v", test.sets, err)
		}
		said := strings.Join(run.Remarks, "\n")
		if strings.Contains(said, "has no effect") && test.want == "" || !strings.Contains(said, test.want) {
			t.Errorf("%v%s: remarks %q, want %q", test.sets, test.task, said, test.want)
		}
	}
}

func TestLabelMapsNumberTheLabels(t *testing.T) {
	for _, test := range []struct {
		name, maps string
		want       []string
	}{
		{"all of the data", "{mood: {0: so-so, 1: good, 2: bad}}, heads: [{num_labels: 3}]", []string{"so-so", "good", "bad"}},
		{"one that the data has not", "{mood: {0: so-so, 1: good, 2: bad, 3: awful}}, heads: [{num_labels: 4}]", []string{"so-so", "good", "bad", "awful"}},
		{"one of the data is not there", "{mood: {2: bad, 1: good}}", []string{"good", "bad", "0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl}, label_maps: "+test.maps+"}\n",
				map[string]string{"a.jsonl": `{"text": "a", "label": 0}` + "\n" + `{"text": "b", "label": 1}` + "\n" + `{"text": "c", "label": "2"}` + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			if got := run.Model.Groups[0].Tasks[0].Heads[0].Labels.Names(); !slices.Equal(got, test.want) {
				t.Errorf("labels are %q, want %q", got, test.want)
			}
		})
	}
}

func TestBF16OfAFrozenEncoderIsRemarkedOn(t *testing.T) {
	for freeze, want := range map[string]bool{"all": true, "none": false} {
		e := mustRead(t, sample.Small(t, ""), "model.freeze="+freeze)
		e.Training.Precision = config.BF16 // which Read refuses where the processor lacks it
		run, err := ready(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		remark := func(s string) bool { return strings.Contains(s, "precision: bf16 has no effect") }
		if slices.ContainsFunc(run.Remarks, remark) != want {
			t.Errorf("freeze: %s: remarks %q", freeze, run.Remarks)
		}
	}
}

func labelOf(t corpus.Target) string { return outputs.As[outputs.LabelTarget](t).Label }

func tagsOf(t corpus.Target) []string { return outputs.As[outputs.TagsTarget](t).Tags }
