package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

// TestADirectionThatTheMetricDoesNotImplyIsADifference removes greater_is_better, which some versions have written to
// the file of each run.
func TestADirectionThatTheMetricDoesNotImplyIsADifference(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	const loss = "training.metric_for_best_model=eval_loss"
	interruptIn(t, folder, path, 2, loss, "training.greater_is_better=true")
	resume := func(change func(text string) string) error {
		t.Helper()
		found, err := FindUnfinished(folder)
		if err != nil {
			t.Fatal(err)
		}
		found.saved.state.Experiment = change(found.saved.state.Experiment)
		_, err = found.Resume(mustRead(t, path, loss), nil, nil)
		return err
	}
	const want = "  experiment: training.greater_is_better: was true, is none\n"
	err := resume(func(text string) string { return text })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without greater_is_better: true, against the metric: Resume = %v, want %s", err, want)
	}
	err = resume(func(text string) string {
		return strings.Replace(text, "greater_is_better: true", "greater_is_better: false", 1)
	})
	if err != nil {
		t.Errorf("without what the metric implies: Resume = %v", err)
	}
}
