package predict

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestARunOpensAsItWasTrained(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, done := trainSmall(t, sample.Small(t, ""), folder)
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	metrics, err := run.Evaluate(context.Background(), config.Dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := report.Metrics(metrics), report.Metrics(done.Best.Groups)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s = %v in the opened run, %v when it was saved", name, got[name], want[name])
		}
	}
	if v := got["eval_overall"]; v < 0.9 {
		t.Errorf("eval_overall = %v, want at least 0.9: the experiment is easy", v)
	}
	if err := run.Read(t.Context(), config.Test, "team", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := len(run.Data.Groups[0].Examples[config.Test]), 8; got != want {
		t.Errorf("%d test examples, want %d", got, want)
	}
	for _, name := range []string{"last", "tasks/team", "tasks/things"} {
		if _, err := OpenRun(t.Context(), filepath.Join(folder, name)); err != nil {
			t.Errorf("Open(%s): %v", name, err)
		}
	}
}

func TestPredictionsDoNotDependOnTheBatch(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder)
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"the invoice was late", `{"words": ["a", "button", "hangs"]}`, "the",
		`{"text": "a menu hangs", "pair": "often"}`}
	var together []*corpus.Example
	var alone []Prediction
	for n, line := range lines {
		e, err := inputs.Parse(line, n+1, inputs.Columns{})
		if err != nil {
			t.Fatal(err)
		}
		together = append(together, e.Example)
		single, _ := inputs.Parse(line, n+1, inputs.Columns{})
		predictions, err := run.answer(t, Form{}, []*corpus.Example{single.Example})
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, predictions[0])
	}
	predictions, err := run.answer(t, Form{}, together)
	if err != nil {
		t.Fatal(err)
	}
	for i := range predictions {
		if got, want := fmt.Sprint(jsonOf(t, predictions[i])), fmt.Sprint(jsonOf(t, alone[i])); got != want {
			t.Errorf("in a batch %s, alone %s", got, want)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
