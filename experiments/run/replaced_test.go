package run

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestARunIsKeptUntilTheNextHasACheckpoint(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	before := sample.Files(t, folder)
	e := mustRead(t, path, "training.num_epochs=2", "seed=7")
	failed := errors.New("the disk is full")
	until := func(fails func(event train.Event) bool) {
		t.Helper()
		r, err := ready(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Train(context.Background(), folder, func(event train.Event) error {
			if fails(event) {
				return failed
			}
			return nil
		}); !errors.Is(err, failed) {
			t.Fatalf("Train = %v, want %v", err, failed)
		}
	}

	until(func(event train.Event) bool {
		step, ok := event.(train.Step)
		if ok && step.Number == 1 {
			_, _, err := runfolder.Find(folder)
			aside := filepath.Join(folder, runfolder.ReplacedDir)
			if err == nil || !strings.Contains(err.Error(), "the earlier run is in "+aside) {
				t.Errorf("before the first checkpoint Find = %v", err)
			}
		}
		return ok && step.Number == 2
	})
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("a training that failed before its first checkpoint has changed the run")
	}

	until(func(event train.Event) bool {
		step, ok := event.(train.Step)
		return ok && step.Epoch > 1
	})
	got := sample.Files(t, folder)
	best := filepath.Join(runfolder.BestDir, runfolder.TensorsFile)
	if got[best] == before[best] || got[runfolder.ExperimentFile] == before[runfolder.ExperimentFile] {
		t.Error("a training that failed after its first checkpoint has not replaced the run")
	}
	if runfolder.Exists(filepath.Join(folder, runfolder.ReplacedDir)) {
		t.Error("the earlier run is kept after the first checkpoint")
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
