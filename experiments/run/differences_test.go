package run

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
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

// A run that began before a key existed has trained as that key's default says.
func TestKeysThatTheRunDidNotHaveAreTheirDefaults(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, path, 6)
	resume := func(sets ...string) error {
		t.Helper()
		found, err := FindUnfinished(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"  gradient_dtype: float32\n", "  all_reduce: tree\n"} {
			if !strings.Contains(found.saved.state.Experiment, line) {
				t.Fatalf("the run's experiment lacks %q", line)
			}
			found.saved.state.Experiment = strings.Replace(found.saved.state.Experiment, line, "", 1)
		}
		_, err = found.Resume(mustRead(t, found.File, sets...), nil, nil)
		return err
	}
	if err := resume(); err != nil {
		t.Errorf("without the keys: Resume = %v", err)
	}
	const want = "  experiment: training.gradient_dtype: was float32, is bf16\n"
	if err := resume("training.gradient_dtype=bf16"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with another value of a key that the run did not have: Resume = %v, want %s", err, want)
	}
}

// Sizes that an earlier version of jenga wrote beside a base model had no effect.
func TestSizesBesideABaseModelAreNoDifference(t *testing.T) {
	for _, c := range []struct {
		was, now string
		want     []difference
	}{
		{"{base_model: a, encoder: {type: transformer, layers: 4, width: 256}}",
			"{base_model: a, encoder: {type: transformer}}", nil},
		{"{base_model: a, encoder: {type: transformer, layers: 4}}", "{base_model: a}",
			[]difference{{of: changedExperiment, what: "model.encoder.layers", was: "4", now: "none"},
				{of: changedExperiment, what: "model.encoder.type", was: "transformer", now: "none"}}},
		{"{encoder: {type: transformer, layers: 4}}", "{encoder: {type: transformer, layers: 3}}",
			[]difference{{of: changedExperiment, what: "model.encoder.layers", was: "4", now: "3"}}},
	} {
		got, err := experimentDifferences("", []byte("model: "+c.was), []byte("model: "+c.now))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, then %s: %v, %v; want %v", c.was, c.now, got, err, c.want)
		}
	}
}
