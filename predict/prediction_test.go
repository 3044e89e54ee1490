package predict

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// kindTask is a task of another kind of outputs.
type kindTask struct {
	tasks.Task
	kind *outputs.Kind
}

func (k kindTask) Output() *outputs.Kind { return k.kind }

// A kind of another module that predicts one label is decided as ours is, whatever its name.
func TestOneLabelOfAnotherKindHasOneThreshold(t *testing.T) {
	kind := *outputs.Label
	kind.Name = "grade"
	model := &multitask.Model{Groups: []multitask.Group{{Tasks: []multitask.Task{{Name: "mood",
		Type:  kindTask{kind: &kind},
		Heads: []multitask.Head{{Name: "mood", Labels: corpus.NewLabels([]string{"bad", "good"})}}}}}}}
	all := decidingHeads(model)
	if err := checkDecision(all, "mood", map[string]float64{"": 0.5}, false); err != nil {
		t.Error(err)
	}
	err := checkDecision(all, "mood", map[string]float64{"good": 0.5}, false)
	if err == nil || !strings.Contains(err.Error(), "it predicts one label; want a number") {
		t.Errorf("a threshold of one of its labels: %v", err)
	}
}

// The output of jenga predict is this JSON: no program may lose an error by marshalling it.
func TestPredictionsAreMarshalledWithTheirErrors(t *testing.T) {
	tasks := map[string]map[string]any{"mood": {"mood": map[string]any{"label": "a<b"}}}
	for _, test := range []struct {
		prediction    Prediction
		want, escaped string
	}{
		{
			prediction: Prediction{Text: "so <b>", Tasks: tasks},
			want:       `{"text":"so <b>","truncated":0,"tasks":{"mood":{"mood":{"label":"a<b"}}}}`,
			escaped:    `{"text":"so \u003cb\u003e","truncated":0,"tasks":{"mood":{"mood":{"label":"a\u003cb"}}}}`,
		},
		{
			prediction: Prediction{Text: "so", Pair: "fine", Truncated: 3, Tasks: tasks},
			want:       `{"text":"so","pair":"fine","truncated":3,"tasks":{"mood":{"mood":{"label":"a<b"}}}}`,
			escaped:    `{"text":"so","pair":"fine","truncated":3,"tasks":{"mood":{"mood":{"label":"a\u003cb"}}}}`,
		},
		{ // read again, it is a pair
			prediction: Prediction{Text: "so", Paired: true, Tasks: tasks},
			want:       `{"text":"so","pair":"","truncated":0,"tasks":{"mood":{"mood":{"label":"a<b"}}}}`,
			escaped:    `{"text":"so","pair":"","truncated":0,"tasks":{"mood":{"mood":{"label":"a\u003cb"}}}}`,
		},
		{
			prediction: Prediction{Line: 7, Text: "so", Tasks: tasks, Fields: map[string]any{
				"id": json.Number("1e400"), "z": []any{nil, "<"}, "a": map[string]any{"y": 1, "b": true}, "tasks": "x",
				"line": "2",
			}},
			want: `{"line":7,"id":1e400,"text":"so","truncated":0,"a":{"b":true,"y":1},"z":[null,"<"],` +
				`"input":{"line":"2","tasks":"x"},"tasks":{"mood":{"mood":{"label":"a<b"}}}}`,
			escaped: `{"line":7,"id":1e400,"text":"so","truncated":0,"a":{"b":true,"y":1},"z":[null,"\u003c"],` +
				`"input":{"line":"2","tasks":"x"},"tasks":{"mood":{"mood":{"label":"a\u003cb"}}}}`,
		},
		{
			prediction: Prediction{Err: errors.New("no"), Line: 2, Fields: map[string]any{"id": "x", "error": "y"}},
			want:       `{"error":"no","line":2,"id":"x","input":{"error":"y"}}`,
			escaped:    `{"error":"no","line":2,"id":"x","input":{"error":"y"}}`,
		},
		{
			prediction: Prediction{Err: errors.New(`line 2: "a&b"`), Text: "so", Tasks: tasks},
			want:       `{"error":"line 2: \"a&b\""}`,
			escaped:    `{"error":"line 2: \"a\u0026b\""}`,
		},
	} {
		var line strings.Builder
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(test.prediction); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(line.String(), "\n"); got != test.want {
			t.Errorf("%+v is the line %s, want %s", test.prediction, got, test.want)
		}
		got, err := json.Marshal(&test.prediction)
		if err != nil || string(got) != test.escaped {
			t.Errorf("Marshal of %+v = %s, %v, want %s", test.prediction, got, err, test.escaped)
		}
	}
}
