package predict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

func TestARunTrainedInBF16PredictsOnEveryProcessor(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	e, err := config.Read(path, []string{"training.num_epochs=10"})
	if err != nil {
		t.Fatal(err)
	}
	e.Training.Precision = config.BF16 // which Read rejects if the processor lacks it
	_, done := train(t, e, folder)
	if done.Value < 0.7 {
		t.Errorf("%s is %v: little was learned", done.Metric, done.Value)
	}
	text, err := os.ReadFile(filepath.Join(folder, runfolder.ExperimentFile))
	if err != nil || !strings.Contains(string(text), "precision: bf16") {
		t.Errorf("%v; the run's experiment.yaml does not have precision: bf16\n%s", err, text)
	}

	run, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	metrics, err := run.Evaluate(t.Context(), config.Dev, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	value := report.Metrics(metrics)[done.Metric]
	if value != done.Value {
		t.Errorf("evaluated at %v; in training at %v", value, done.Value)
	}
}
