package parttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// Task checks the task registered as name, made with options written as YAML. records are labelled records as in its
// data files; without any they are those of the sample of the task's kind of outputs.
func Task(t *testing.T, name, options string, records ...corpus.Record) {
	t.Helper()
	taskHeads := []string{"first", "second"}
	task := built(t, tasks.Registry(), name, options,
		tasks.Env{Name: "task", Heads: taskHeads, Split: corpus.Splitter(corpus.SplitWhitespace, nil)})
	sample := sampleOf(t, task.Output())
	if len(records) == 0 {
		for i := range labels {
			records = append(records, sample.record(t, task.Output(), i))
		}
	}

	t.Run("it hides nothing of a task that it has in a field", func(t *testing.T) { checkDescribed(t, task) })
	t.Run("an example has a target for each head",
		func(t *testing.T) { checkExamples(t, task, records, len(taskHeads)) })
	t.Run("no record makes it panic, and its errors name the line",
		func(t *testing.T) { checkRecords(t, task, records) })
	t.Run("metrics of no examples are 0", func(t *testing.T) { checkNoExamples(t, task) })
	t.Run("right predictions have the best metric", func(t *testing.T) { checkPerfect(t, task) })
	t.Run("wrong predictions have a worse metric", func(t *testing.T) { checkWrong(t, task) })
	t.Run("the order of examples changes no metric", func(t *testing.T) { checkOrder(t, task) })
}

func checkExamples(t *testing.T, task tasks.Task, records []corpus.Record, targets int) {
	labelled := 0
	for _, r := range records {
		e, err := task.Example(r)
		if err != nil {
			t.Fatalf("record %v: %v", r.Fields, err)
		}
		if len(e.Targets) != targets {
			t.Fatalf("%d targets for %d heads", len(e.Targets), targets)
		}
		if e.Place != r.Place {
			t.Errorf("an example of %s says it is of %s", r.Place, e.Place)
		}
		for _, target := range e.Targets {
			if target != nil {
				labelled++
			}
			checkTarget(t, task.Output(), target, &e)
		}
		for _, w := range e.Words {
			if w.Start < 0 || w.Start > w.End || w.End > len(e.Text) {
				t.Errorf("word %v of a text of %d bytes", w, len(e.Text))
			}
		}
	}
	if labelled == 0 {
		t.Error("no record has a target for any head: call Task with records that have the fields that the task reads")
	}
}

// checkTarget requires nil, or a pointer to the target type of the task's kind of outputs.
func checkTarget(t *testing.T, kind *outputs.Kind, target corpus.Target, e *corpus.Example) {
	t.Helper()
	switch v := reflect.ValueOf(target); {
	case target == nil:
	case v.Kind() == reflect.Pointer && v.IsNil():
		t.Errorf("a target is a %T that is nil, which counts as labelled; want nil itself", target)
	default:
		kind.MarshalTarget(target) // panics on another kind's
		if check := samples[kind].CheckTarget; check != nil {
			if err := check(target, e); err != nil {
				t.Error(err)
			}
		}
	}
}

// checkRecords puts strange values into every field of the records, and leaves fields out.
func checkRecords(t *testing.T, task tasks.Task, records []corpus.Record) {
	strange := []any{nil, "", "x", json.Number("1e999"), json.Number("-3"), true, []any{},
		[]any{nil, json.Number("1"), "a"},
		[]any{[]any{"deep"}}, map[string]any{}, map[string]any{"a": nil}, "\xff\u200d", strings.Repeat("long ", 1000)}
	for _, r := range records {
		for field := range r.Fields {
			for _, v := range strange {
				other := corpus.Record{Place: r.Place, Fields: maps.Clone(r.Fields)}
				other.Fields[field] = v
				checkRecord(t, task, fmt.Sprintf("field %s = %#v", field, v), other)
			}
		}
	}
	checkRecord(t, task, "no field", corpus.Record{Place: records[0].Place})
}

func checkRecord(t *testing.T, task tasks.Task, what string, r corpus.Record) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v", what, p)
		}
	}()
	switch e, err := task.Example(r); {
	case err == nil:
		for _, target := range e.Targets {
			checkTarget(t, task.Output(), target, &e)
		}
	case !strings.HasPrefix(err.Error(), r.Place.String()):
		t.Errorf("%s: the error does not begin with %s: %v", what, r.Place, err)
	}
}

func judgedTexts(kind *outputs.Kind) (gold []corpus.Target, right, wrong []corpus.Prediction) {
	for i, words := range lengths {
		target, _ := samples[kind].target(i, words)
		yes, no := Predictions(kind, i, words)
		gold, right, wrong = append(gold, target), append(right, yes), append(wrong, no)
	}
	return gold, right, wrong
}

// judge returns the task's metrics, and checks that they are well formed.
func judge(t *testing.T, task tasks.Task, gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	t.Helper()
	metrics := task.Evaluate(gold, predicted)
	if len(metrics) == 0 {
		t.Fatal("Evaluate returns no metric")
	}
	if metrics[0].Lower {
		t.Errorf("lower is better for the main metric, %s, but the highest selects the best model; want another first",
			metrics[0].Name)
	}
	seen := map[string]bool{}
	for _, m := range metrics {
		if m.Name == "" || seen[m.Name] {
			t.Errorf("metric name %q is empty or a duplicate", m.Name)
		}
		seen[m.Name] = true
		if math.IsNaN(m.Value) || !m.Lower && (m.Value > 1 || m.Value < -1) {
			t.Errorf("%s = %v, which is not a fraction", m.Name, m.Value)
		}
	}
	return metrics
}

func checkNoExamples(t *testing.T, task tasks.Task) {
	gold, right, _ := judgedTexts(task.Output())
	full, empty := judge(t, task, gold, right), judge(t, task, nil, nil)
	for _, m := range empty {
		if m.Value != 0 {
			t.Errorf("%s of no examples = %v", m.Name, m.Value)
		}
	}
	if empty[0].Name != full[0].Name {
		t.Errorf("the main metric of no examples is %s, else %s", empty[0].Name, full[0].Name)
	}
}

func checkPerfect(t *testing.T, task tasks.Task) {
	gold, right, _ := judgedTexts(task.Output())
	if main := judge(t, task, gold, right)[0]; !(math.Abs(main.Value-1) <= 1e-9) {
		t.Errorf("%s = %v, want 1", main.Name, main.Value)
	}
}

func checkWrong(t *testing.T, task tasks.Task) {
	kind := task.Output()
	gold, right, wrong := judgedTexts(kind)
	best := judge(t, task, gold, right)[0]
	worse := func(where string, predicted []corpus.Prediction) {
		t.Helper()
		if got := judge(t, task, gold, predicted)[0]; got.Value >= best.Value {
			t.Errorf("%s = %v where %s, %v where all is right", got.Name, got.Value, where, best.Value)
		}
	}
	worse("all is wrong", wrong)
	worse("one is wrong", slices.Concat(wrong[:1], right[1:]))

	unseen := false
	kind.Names(gold[0], func(name *string) {
		if !unseen {
			*name, unseen = "unseen", true
		}
	})
	if kind.AssignIDs(gold[0], corpus.NewLabels(labels)); unseen {
		worse("a label does not occur in training", right)
	}
}

func checkOrder(t *testing.T, task tasks.Task) {
	gold, mixed, wrong := judgedTexts(task.Output())
	mixed[1] = wrong[1]
	want := judge(t, task, gold, mixed)
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		r.Shuffle(len(gold), func(i, j int) {
			gold[i], gold[j] = gold[j], gold[i]
			mixed[i], mixed[j] = mixed[j], mixed[i]
		})
		got := judge(t, task, gold, mixed)
		for i, m := range got {
			if m.Name != want[i].Name || !(math.Abs(m.Value-want[i].Value) <= 1e-12) {
				t.Errorf("%v in another order %v", want[i], m)
			}
		}
	}
}

// Output checks a kind of outputs by its own sample.
func Output(t *testing.T, kind *outputs.Kind) {
	t.Helper()
	sampleOf(t, kind)
	gold, right, wrong := judgedTexts(kind)
	t.Run("targets and predictions survive as bytes", func(t *testing.T) {
		for i := range gold {
			checkTargetBytes(t, kind, gold[i])
			checkPredictionBytes(t, kind, right[i])
		}
		checkTargetBytes(t, kind, nil)
	})
	t.Run("labels can be listed, renamed and numbered", func(t *testing.T) { checkNames(t, kind) })
	t.Run("Right tells right from wrong predictions", func(t *testing.T) {
		for i := range gold {
			if kind.Discrete() && !kind.Right(gold[i], right[i]) {
				t.Errorf("target %+v: %+v is not right", gold[i], right[i])
			}
			if kind.Discrete() && kind.Right(gold[i], wrong[i]) {
				t.Errorf("target %+v: %+v is right", gold[i], wrong[i])
			}
		}
	})
	t.Run("targets are written as the predictions that are right", func(t *testing.T) {
		for i, p := range right {
			in := Input(t, i)
			switch written := kind.Gold(gold[i], in); {
			case kind.Data(p, in) == nil:
				continue // the kind does not say how
			case written == gold[i]:
				t.Fatal("Data writes predictions as data has them, and Gold is nil; want it to write targets so")
			}
			data, errData := json.Marshal(kind.Data(p, in))
			target, errTarget := json.Marshal(kind.Gold(gold[i], in))
			if err := errors.Join(errData, errTarget); err != nil || string(data) != string(target) {
				t.Errorf("target %s is written as %s, the right prediction as %s; %v", show(gold[i]), target, data, err)
			}
		}
	})
	t.Run("predictions are written as JSON objects", func(t *testing.T) {
		for i, p := range right {
			checkJSON(t, kind, p, Input(t, i))
		}
	})
}

// Input is the input of the predictions of a kind's sample number i: an example of as many words, with a pair, whose
// tokens are its words.
func Input(t *testing.T, i int) outputs.Input {
	t.Helper()
	words := slices.Repeat([]string{"word"}, lengths[i])
	e, err := corpus.Record{Fields: map[string]any{"words": words, "pair": pair}}.Example()
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := corpus.TrainWordPiece(slices.Values([]string{"word", pair}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	e.Windows = corpus.Windowing{}.Encode(tokenizer, &e)
	return outputs.Input{Example: &e, Labels: corpus.NewLabels(labels), Tokenizer: tokenizer}
}

func checkTargetBytes(t *testing.T, kind *outputs.Kind, target corpus.Target) {
	t.Helper()
	got, err := kind.UnmarshalTarget(kind.MarshalTarget(target))
	if err != nil || !reflect.DeepEqual(got, target) {
		t.Errorf("target %+v is read back as %+v, %v", target, got, err)
	}
}

func checkPredictionBytes(t *testing.T, kind *outputs.Kind, p corpus.Prediction) {
	t.Helper()
	got, err := kind.UnmarshalPrediction(kind.MarshalPrediction(p))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("prediction %s is read back as %s, %v", show(p), show(got), err)
	}
}

// checkNames renames the labels of targets, and numbers them.
func checkNames(t *testing.T, kind *outputs.Kind) {
	set := corpus.NewLabels(labels)
	for i, words := range lengths {
		target, _ := samples[kind].target(i, words)
		named := 0
		kind.Names(target, func(name *string) {
			named++
			if set.ID(*name) < 0 {
				t.Errorf("label %q is not one of the sample's", *name)
			}
			*name = "renamed"
		})
		kind.Names(target, func(name *string) {
			if *name != "renamed" {
				t.Errorf("label %q stays where it is renamed", *name)
			}
		})
		kind.AssignIDs(target, set)
		if unknown := kind.Unknown(target); named > 0 && len(unknown) == 0 || len(unknown) > named {
			t.Errorf("of %d labels that do not occur in training Unknown lists %q", named, unknown)
		}
		if n := len(kind.Count(target).Labels); kind.PerWord && kind.HasLabels && n != words {
			t.Errorf("Count has %d labels for %d words", n, words)
		}
		if named > 0 && !kind.HasLabels {
			t.Error("targets name labels, but the kind has none")
		}
	}
}

func checkJSON(t *testing.T, kind *outputs.Kind, p corpus.Prediction, in outputs.Input) {
	t.Helper()
	text, err := json.Marshal(kind.JSON(p, in))
	if err != nil || !strings.HasPrefix(string(text), "{") {
		t.Errorf("prediction %s is written as %s, %v; want an object", show(p), text, err)
	}
}
