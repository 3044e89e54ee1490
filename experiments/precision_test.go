package experiments

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// processor makes tests run on one that multiplies bfloat16, or that says why it does not.
func processor(t *testing.T, why error) {
	t.Helper()
	before := checkBFloat16
	checkBFloat16 = func() error { return why }
	t.Cleanup(func() { checkBFloat16 = before })
}

func TestBF16WhereTheProcessorCannotIsAnErrorWithItsPlace(t *testing.T) {
	processor(t, errors.New("this processor cannot"))
	path := smallExperiment(t, "")
	_, err := Read(path, []string{"training.precision=bf16"})
	want := "--set training.precision=bf16: training: precision: bf16: this processor cannot; leave precision out, or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "batch_size: 8", "precision: bf16", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Read(path, nil)
	want = path + ":13:46: training: precision: bf16: this processor cannot; leave precision out, or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if _, err := Read(path, []string{"training.precision=float32"}); err != nil {
		t.Error(err)
	}
}

func TestARunTrainedInBF16AnswersOnEveryProcessor(t *testing.T) {
	processor(t, nil)
	path, folder := smallExperiment(t, ""), filepath.Join(t.TempDir(), "run")
	trained, done := trainSmall(t, path, folder, "training.precision=bf16", "training.num_epochs=10")
	if done.Value < 0.7 {
		t.Errorf("%s is %v: little was learned", done.Metric, done.Value)
	}
	text, err := os.ReadFile(filepath.Join(folder, experimentFile))
	if err != nil || !strings.Contains(string(text), "precision: bf16") {
		t.Errorf("%v; the run's experiment.yaml does not say precision: bf16\n%s", err, text)
	}

	processor(t, errors.New("this processor cannot"))
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	scores, err := run.Evaluate(t.Context(), Dev, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	value, err := trained.Experiment.Training.selection().value(scores)
	if err != nil || value != done.Value {
		t.Errorf("judged at %v, %v; in training at %v", value, err, done.Value)
	}
}

func TestBF16OfAFrozenEncoderIsRemarkedOn(t *testing.T) {
	processor(t, nil)
	for freeze, want := range map[string]bool{"all": true, "none": false} {
		run := prepared(t, smallExperiment(t, ""), 1<<30, "training.precision=bf16", "model.freeze="+freeze)
		remark := func(s string) bool { return strings.Contains(s, "precision: bf16 has no effect") }
		if slices.ContainsFunc(run.Remarks, remark) != want {
			t.Errorf("freeze: %s: remarks %q", freeze, run.Remarks)
		}
	}
}
