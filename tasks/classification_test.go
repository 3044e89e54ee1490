package tasks_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestClassification(t *testing.T) { parttest.Task(t, "classification", "") }

func TestSentiment(t *testing.T) { parttest.Task(t, "sentiment", "") }

// record returns a record at line 7 of a file data.jsonl.
func record(fields map[string]any) corpus.Record {
	return corpus.Record{Place: corpus.Place{File: "data.jsonl", Line: 7}, Fields: fields}
}

func TestHeadLabelPrecedesTaskLabel(t *testing.T) {
	task := tasks.NewClassification(tasks.Env{Heads: []string{"type", "urgency"}})
	for _, c := range []struct {
		name   string
		fields map[string]any
		want   [2]string
	}{
		{"the label of the task is that of all heads", map[string]any{"label": "a"}, [2]string{"a", "a"}},
		{"a number keeps its spelling", map[string]any{"label": json.Number("1")}, [2]string{"1", "1"}},
		{"the label of a head precedes that of the task", map[string]any{"label": "a", "label.urgency": "b"},
			[2]string{"a", "b"}},
		{"a null label of a head", map[string]any{"label": "a", "label.urgency": nil},
			[2]string{"a", ""}},
		{"the column of Jenga-NLP", map[string]any{"quality_level": "good"}, [2]string{"good", "good"}},
		{"label before quality_level", map[string]any{"label": "a", "quality_level": "good"}, [2]string{"a", "a"}},
		{"a list of one", map[string]any{"label": []any{"a"}}, [2]string{"a", "a"}},
		{"a list of one in a cell", map[string]any{"label": "['a b']"}, [2]string{"a b", "a b"}},
		{"in brackets", map[string]any{"label": "[1]"}, [2]string{"[1]", "[1]"}},
		{"with quotes", map[string]any{"label": "it's"}, [2]string{"it's", "it's"}},
		{"none", map[string]any{}, [2]string{}},
		{"null", map[string]any{"label": nil}, [2]string{}},
		{"empty", map[string]any{"label": ""}, [2]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fields["text"] = "a text"
			e, err := task.Example(record(c.fields))
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				got := e.Targets[i]
				label := outputs.As[outputs.LabelTarget](got)
				if (label != nil) != (want != "") || label != nil && label.Label != want {
					t.Errorf("head %d: %+v, want label %q", i, got, want)
				}
			}
		})
	}
}

func TestUnknownLabelCountsAsWrong(t *testing.T) {
	task := tasks.NewClassification(tasks.Env{Heads: []string{"type"}})
	gold := []corpus.Target{&outputs.LabelTarget{Label: "a"}, &outputs.LabelTarget{Label: "new", ID: corpus.Unknown}}
	metrics := task.Evaluate(gold, outputs.Erase([]outputs.LabelPrediction{{Label: "a"}, {Label: "a"}}))
	if metrics[0] != (tasks.Metric{Name: "accuracy", Value: 0.5}) {
		t.Errorf("first metric %v, want accuracy 0.5", metrics[0])
	}
}

func TestQAQC(t *testing.T) {
	one, zero := json.Number("1"), json.Number("0")
	lists := func(first, second []any) corpus.Record {
		return record(map[string]any{"text": "how may I help?",
			"labels": map[string]any{"first": first, "second": second}})
	}
	parttest.Task(t, "qa_qc", "", lists([]any{one}, []any{one, zero}), lists([]any{zero}, []any{zero, zero}))
}

func TestQAQCListOfSingleHead(t *testing.T) {
	one, zero := json.Number("1"), json.Number("0")
	example := func(fields map[string]any, heads ...string) (corpus.Example, error) {
		task, err := tasks.NewQAQC(tasks.MultiLabelOptions{Separator: ","}, tasks.Env{Heads: heads})
		if err != nil {
			t.Fatal(err)
		}
		fields["text"] = "hello"
		return task.Example(record(fields))
	}
	want := &outputs.LabelsTarget{Labels: []string{"1"}, Absent: []string{"0"}}
	for _, fields := range []map[string]any{{"labels": []any{zero, one}}, {"labels": "[0, 1]"},
		{"label.opening": []any{zero, one}, "label.closing": []any{one}}} {
		heads := []string{"opening", "closing"}[:len(fields)]
		if e, err := example(fields, heads...); err != nil || !reflect.DeepEqual(e.Targets[0], want) {
			t.Errorf("targets %+v, %v, want %+v", e.Targets, err, want)
		}
	}
	_, err := example(map[string]any{"labels": []any{zero, one}}, "opening", "closing")
	if want := `field "labels" is one list, and there are 2 heads; want {"opening": [1, 0], …}`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAmbiguousQAQCAnswersAreErrors(t *testing.T) {
	for _, text := range []any{"0, 1", "1", json.Number("1")} {
		task, err := tasks.NewQAQC(tasks.MultiLabelOptions{Separator: ","}, tasks.Env{Heads: []string{"opening"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = task.Example(record(map[string]any{"text": "hello", "labels": text}))
		if want := `which may be names of questions or answers to them; want answers as [1, 0]`; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("labels %v: error %v, want %q", text, err, want)
		}
	}
}

func TestQAQCListsOfUnknownHeadsWarn(t *testing.T) {
	task, err := tasks.NewQAQC(tasks.MultiLabelOptions{Separator: ","},
		tasks.Env{Heads: []string{"opening", "closing"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := task.Example(record(map[string]any{"text": "hello",
			"labels": `{"openning": [1], "closing": [0]}`})); err != nil {
			t.Fatal(err)
		}
	}
	warnings := tasks.DescriptionOf(task).Warnings()
	if want := `2 lists of labels left out: no head "openning"; did you mean "opening"?`; len(warnings) != 1 ||
		!strings.HasPrefix(warnings[0], want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	_, err = task.Example(record(map[string]any{"text": "hello", "labels": `{"opening": [1]} [0]`}))
	if want := `field "labels" begins with {, but is not a JSON object`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestQAQCTargetsAndMetrics(t *testing.T) {
	task, err := tasks.NewQAQC(tasks.MultiLabelOptions{Separator: ","},
		tasks.Env{Heads: []string{"opening", "listening", "closing"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := task.Example(record(map[string]any{"text": "hello",
		"labels": `{"opening": [1], "listening": [1, 0, 1]}`}))
	if err != nil {
		t.Fatal(err)
	}
	want := []corpus.Target{
		&outputs.LabelsTarget{Labels: []string{"0"}, Absent: []string{}},
		&outputs.LabelsTarget{Labels: []string{"0", "2"}, Absent: []string{"1"}},
		nil, // not labelled
	}
	if !reflect.DeepEqual(e.Targets, want) {
		t.Errorf("targets %+v, want %+v", e.Targets, want)
	}

	// the predictions for two texts with three questions each have one wrong answer
	gold := []corpus.Target{presentLabels("0", "2"), presentLabels("1")}
	predicted := outputs.Erase([]outputs.LabelsPrediction{{Labels: []string{"0", "2"}}, {Labels: []string{"1", "2"}}})
	got := map[string]float64{}
	for _, m := range task.Evaluate(gold, predicted) {
		got[m.Name] = m.Value
	}
	for name, want := range map[string]float64{"f1_micro": 6. / 7, "precision_micro": 0.75, "recall_micro": 1,
		"exact_match": 0.5} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if tasks.DescriptionOf(task).Tables == nil {
		t.Error("qa_qc has no tables, which have metrics for each question")
	}
}
