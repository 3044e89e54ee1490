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
	until := func(fails func(event any) bool) {
		t.Helper()
		r, err := Prepare(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Train(context.Background(), folder, func(event any) error {
			if fails(event) {
				return failed
			}
			return nil
		}); !errors.Is(err, failed) {
			t.Fatalf("Train = %v, want %v", err, failed)
		}
	}

	until(func(event any) bool {
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

	until(func(event any) bool {
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

// killed is what a folder holds when a training that replaces a run was killed.
type killed struct {
	old bool // the earlier run is kept, otherwise the new one
	// leave makes it of the folder with the earlier run, and another with the new one.
	leave func(t *testing.T, fresh string)
}

// killings returns what a kill leaves at each moment of a replacement.
func killings(folder string) map[string]killed {
	aside := filepath.Join(folder, runfolder.ReplacedDir)
	states := map[string]killed{}
	for i := range len(replacedNames) + 1 {
		n := strings.Repeat("+", i)
		states["moving it aside"+n] = killed{true, func(t *testing.T, _ string) {
			moveAll(t, folder, aside, replacedNames[:i])
		}}
		states["moving it back"+n] = killed{true, func(t *testing.T, _ string) {
			moveAll(t, folder, aside, replacedNames)
			moveAll(t, aside, folder, backwards()[:i])
		}}
		states["before the new one's experiment file"+n] = killed{true, func(t *testing.T, fresh string) {
			moveAll(t, folder, aside, replacedNames)
			moveAll(t, fresh, folder, replacedNames[:min(i, len(replacedNames)-1)])
		}}
		states["removing what the new one wrote"+n] = killed{true, func(t *testing.T, fresh string) {
			moveAll(t, folder, aside, replacedNames)
			moveAll(t, fresh, folder, []string{runfolder.MetricsFile, runfolder.ExperimentFile})
			for _, name := range replacedNames[:i] {
				removeAll(t, filepath.Join(folder, name))
			}
		}}
		states["removing it"+n] = killed{false, func(t *testing.T, fresh string) {
			moveAll(t, folder, aside, replacedNames)
			moveAll(t, fresh, folder, replacedNames)
			if err := os.Rename(aside, aside+runfolder.OldSuffix); err != nil {
				t.Fatal(err)
			}
			for _, name := range backwards()[:i] {
				removeAll(t, filepath.Join(aside+runfolder.OldSuffix, name))
			}
		}}
	}
	states["with the new one's first checkpoint"] = killed{false, func(t *testing.T, fresh string) {
		moveAll(t, folder, aside, replacedNames)
		moveAll(t, fresh, folder, replacedNames)
	}}
	return states
}

// backwards lists the experiment file, and then the others.
func backwards() []string {
	last := len(replacedNames) - 1
	return append([]string{replacedNames[last]}, replacedNames[:last]...)
}

func moveAll(t *testing.T, from, to string, names []string) {
	t.Helper()
	if err := moveFiles(from, to, names); err != nil {
		t.Fatal(err)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func TestAKillLosesNoRun(t *testing.T) {
	home := t.TempDir()
	first, second, folder := filepath.Join(home, "1"), filepath.Join(home, "2"), filepath.Join(home, "run")
	trainSmall(t, sample.Small(t, ""), first, "training.num_epochs=1")
	trainSmall(t, sample.Small(t, ""), second, "training.num_epochs=2")
	old, fresh := sample.Files(t, first), sample.Files(t, second)
	for name, state := range killings(folder) {
		spare := filepath.Join(home, "spare")
		for from, to := range map[string]string{first: folder, second: spare} {
			removeAll(t, to)
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		state.leave(t, spare)

		// nothing of it is silent
		if err := CheckFolder(&config.Experiment{}, folder, false); err == nil ||
			!strings.Contains(err.Error(), "holds a run") {
			t.Errorf("%s: CheckFolder = %v", name, err)
		}
		_, _, err := runfolder.Find(folder)
		if err != nil && !strings.Contains(err.Error(), runfolder.ReplacedDir) {
			t.Errorf("%s: Find = %v, want a model, or where the earlier run is", name, err)
		}

		// the next training finds a whole run
		if err := settle(folder); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := fresh
		if state.old {
			want = old
		}
		if got := sample.Files(t, folder); !maps.Equal(got, want) {
			t.Errorf("%s: the folder holds %d files, want the %d of the old (%v) run", name, len(got), len(want),
				state.old)
		}
	}
}
