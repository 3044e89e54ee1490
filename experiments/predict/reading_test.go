package predict

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

func TestAPredictionSaysInHowManyWindowsItsTextWasRead(t *testing.T) {
	const data = `{"text": "a b", "label": "x"}` + "\n" + `{"text": "c", "label": "y"}` + "\n"
	for _, test := range []struct {
		long, text         string
		windows, truncated int
		json               string
	}{
		{"windows", "a b c", 1, 0, `"truncated":0,"tasks"`},
		{"windows", strings.Repeat("a b ", 30), 3, 0, `"truncated":0,"windows":3,"tasks"`},
		{"truncate", strings.Repeat("a b ", 30), 1, 30, `"truncated":30,"tasks"`},
	} {
		_, run := trainedRun(t, "  - {name: team, type: classification, long: "+test.long+", data: {train: a.jsonl, "+
			"dev: a.jsonl}}\n", map[string]string{"a.jsonl": data}, "training.num_epochs=1")
		predictions, err := run.Predictor().Predict([]*corpus.Example{{Text: test.text}})
		if err != nil {
			t.Fatal(err)
		}
		p := predictions[0]
		if p.Windows != test.windows || p.Truncated != test.truncated || !strings.Contains(jsonOf(t, p), test.json) {
			t.Errorf("long: %s, %.10q: %d windows, %d truncated, want %d and %d\n%s", test.long, test.text, p.Windows,
				p.Truncated, test.windows, test.truncated, jsonOf(t, p))
		}
	}
}
