package run

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// A checkpoint of minilm-l6 with the state of AdamW, while snips is trained in batches of 32: how much longer the
// training takes, in steps, and how long until a training that is resumed makes its first step.
func TestACheckpointStallsTrainingForLessThanTwoSteps(t *testing.T) {
	shared.SkipUnlessLong(t)
	dir := shared.Dir(t)
	t.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	const every, steps = 12, 60
	path, folder := filepath.Join("..", "snips.yaml"), filepath.Join(t.TempDir(), "run")
	sets := []string{"training.max_steps=60", "training.eval_strategy=no", "training.save_strategy=steps",
		"training.save_steps=12"}
	r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration // of steps, and of what is between them: [i] is that of step i+1
	var gaps []time.Duration  // after step i+1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last time.Time
	_, err = r.Train(ctx, folder, func(event train.Event) error {
		if step, ok := event.(train.Step); ok {
			if !last.IsZero() {
				gaps = append(gaps, time.Since(last)-step.Time)
			}
			times = append(times, step.Time)
			if last = time.Now(); step.Number == steps-1 {
				cancel()
			}
		}
		return nil
	})
	if err == nil {
		t.Fatal("training was not interrupted")
	}

	checkStall(t, times, gaps, every)

	// resuming
	began := time.Now()
	ctx, cancel = context.WithCancel(t.Context())
	resumed := resumedRun(t, folder)
	prepared := time.Since(began)
	if _, err := resumed.Train(ctx, folder, func(event train.Event) error {
		if step, ok := event.(train.Step); ok {
			t.Logf("the first step of a resumed training begins after %v, of which %v are to read all",
				time.Since(began)-step.Time, prepared)
			cancel()
		}
		return nil
	}); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// checkStall compares steps after which a checkpoint is saved, one in every, with the others. gaps are the times
// between steps.
func checkStall(t *testing.T, times, gaps []time.Duration, every int) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(times))
	step := sorted[len(sorted)/2]
	var copies, slower []float64
	for at := every; at+every/2 < len(times); at += every {
		copies = append(copies, float64(gaps[at-1])/float64(step))
		sum := gaps[at-1]
		for _, d := range times[at : at+every/2] {
			sum += d - step
		}
		slower = append(slower, float64(sum)/float64(step))
	}
	t.Logf("a step takes %v; steps that training waits at a checkpoint: %.2f; with the slower steps after it: %.2f",
		step, copies, slower)
	first := copies[0] // for which memory is allocated
	slices.Sort(copies)
	if median := copies[len(copies)/2]; first >= 2 || median >= 2 {
		t.Errorf("training waits for %.2f steps at the first checkpoint, and %.2f at the median one; want less than 2",
			first, median)
	}
}
