package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// TestAKillBeforeTheFirstCheckpointLeavesTheExperiment resumes a run with a change, and ends that as a kill does before
// and after its first checkpoint.
func TestAKillBeforeTheFirstCheckpointLeavesTheExperiment(t *testing.T) {
	folder := interruptedRun(t, 6, "training.num_epochs=4")
	before := sample.Files(t, folder)
	resume := func(n int, allowed []string, sets ...string) {
		t.Helper()
		found, err := resume.Find(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(t.Context(), mustRead(t, found.File, sets...), found.Point, nil, allowed)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Train(countdown{context.Background(), &n}, folder, ignore)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	const change = "training.learning_rate=0.5"
	resume(0, []string{"experiment"}, change)
	if after := sample.Files(t, folder); after[runfolder.ExperimentFile] != before[runfolder.ExperimentFile] {
		t.Error("the experiment file has changed before the first checkpoint")
	}
	resume(0, nil)

	// between the checkpoint and the file
	resume(2, []string{"experiment"}, change)
	file := filepath.Join(folder, runfolder.ExperimentFile)
	if rate := mustRead(t, file).Training.Rate; rate != 0.5 {
		t.Fatalf("after the first checkpoint the experiment has the learning rate %v", rate)
	}
	sample.Write(t, file, before[runfolder.ExperimentFile])
	resume(100, nil)
	if rate := mustRead(t, file).Training.Rate; rate != 0.5 {
		t.Errorf("after a kill before the file the experiment has the learning rate %v", rate)
	}
}

// TestAResumedTrainingAtItsEndHasItsExperiment resumes a training that has no step left.
func TestAResumedTrainingAtItsEndHasItsExperiment(t *testing.T) {
	folder := interruptedRun(t, 6, "training.num_epochs=4", "training.eval_strategy=no")
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	shorter := mustRead(t, found.File, fmt.Sprintf("training.max_steps=%d", found.Point.State.Step))
	r, err := Resume(t.Context(), shorter, found.Point, nil, []string{"experiment"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	e := mustRead(t, filepath.Join(folder, runfolder.ExperimentFile))
	if e.Training.MaxSteps != found.Point.State.Step {
		t.Errorf("the run's experiment has max_steps %d, want %d", e.Training.MaxSteps, found.Point.State.Step)
	}
}
