package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// TestADirectionThatTheMetricDoesNotImplyIsADifference removes greater_is_better, against the metric.
func TestADirectionThatTheMetricDoesNotImplyIsADifference(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	const loss = "training.metric_for_best_model=eval_loss"
	interruptIn(t, folder, path, 2, loss, "training.greater_is_better=true")
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	const want = "  experiment: training.greater_is_better: was true, is none\n"
	_, err = Resume(t.Context(), mustRead(t, path, loss), found.Point, nil, nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without greater_is_better: true, against the metric: Resume = %v, want %s", err, want)
	}
}
