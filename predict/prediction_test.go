package predict

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

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
