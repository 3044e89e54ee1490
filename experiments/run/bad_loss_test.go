package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// withOutlier is an experiment on numbers up to 2, one of which is 1e9: the square of its error explodes.
func withOutlier(t *testing.T, sets ...string) *Run {
	t.Helper()
	var data strings.Builder
	data.WriteString("text,value\n")
	for i := range 160 {
		value := fmt.Sprint(i % 3)
		if i == 21 { // not in the first 20 steps of seed 42
			value = "1e9"
		}
		fmt.Fprintf(&data, "note %d %s,%s\n", i, strings.Repeat("a ", i%5), value)
	}
	dev := "text,value\nnote,1\nnote a,2\nnote a a,0\n"
	r, err := prepare(t, "  - {name: much, type: regression, data: {train: a.csv, dev: dev.csv}, heads: [{type: "+
		"regression, scale: none}]}\n", map[string]string{"a.csv": data.String(), "dev.csv": dev},
		append(sets, "training.batch_size=4", "training.num_epochs=2")...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestABadLossEndsARun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	done, err := withOutlier(t).Train(context.Background(), folder, ignore)
	var bad *multitask.BadStep
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `task "much": the loss of head "much" is `) ||
		!strings.Contains(err.Error(), `times its usual`) || !strings.Contains(err.Error(), `a.csv:23 "note 21 a "`) {
		t.Fatalf("Train = %v", err)
	}
	if done.Step < 20 || done.Step >= 80 {
		t.Errorf("it ended after step %d", done.Step)
	}
	metrics := sample.Files(t, folder)[runfolder.MetricsFile]
	if !strings.Contains(metrics, `{"event":"error","step":`) {
		t.Errorf("metrics: %s", metrics)
	}
}

func TestARunSkipsBadLosses(t *testing.T) {
	metrics := map[bool]string{}
	var weights []string
	for _, again := range []bool{false, true} {
		folder := filepath.Join(t.TempDir(), "run")
		var warnings []string
		r := withOutlier(t, "training.on_bad_loss=skip")
		done, err := r.Train(context.Background(), folder, func(event train.Event) error {
			if step, ok := event.(train.Step); ok && step.Bad != nil {
				warnings = append(warnings, events.SkippedWarning(step).Text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if done.Skipped != 2 || len(warnings) != 2 || !strings.Contains(warnings[0], `a.csv:23 "note 21 a "`) {
			t.Errorf("%d steps without an update, warnings %q", done.Skipped, warnings)
		}
		metrics[again] = sample.Files(t, folder)[runfolder.MetricsFile]
		weights = append(weights, sample.Files(t, filepath.Join(folder, "last"))["model.safetensors"])
	}
	if weights[0] != weights[1] {
		t.Error("two runs have other weights")
	}
	for _, want := range []string{
		`{"event":"skipped","step":`, `a.csv:23 \"note 21 a \""],"skipped":2}`, `"skipped":2,"seconds":`,
	} {
		if !strings.Contains(metrics[false], want) {
			t.Errorf("metrics have no %s:\n%s", want, metrics[false])
		}
	}
}
