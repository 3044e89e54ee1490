package tasks_test

import (
	"encoding/json"
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
