package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestOldCheckpointsAreRemoved(t *testing.T) {
	for limit, want := range map[string][]int{"1": nil, "2": {10, 12}, "0": {2, 3, 4, 6, 8, 9, 10, 12}} {
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=4", "training.save_strategy=steps",
			"training.save_steps=2", "training.save_total_limit="+limit)
		got, err := runfolder.Steps(filepath.Join(folder, runfolder.CheckpointsDir))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("with save_total_limit: %s checkpoints of steps %v are kept, %v; want %v", limit, got, err, want)
		}
		if states, err := filepath.Glob(filepath.Join(folder, "*", "*", runfolder.SnapshotFile)); err != nil ||
			len(states) > 0 || runfolder.Exists(filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)) {
			t.Errorf("a run that is finished has the state of its training, %q, %v", states, err)
		}

		// after a kill at the end
		for _, step := range got {
			sample.Write(t, filepath.Join(folder, runfolder.CheckpointsDir, fmt.Sprintf("step-%d", step),
				runfolder.SnapshotFile), "")
		}
		if found, err := resume.Find(t.Context(), folder); err != nil || !found.Done() {
			t.Errorf("a run that is finished: %+v, %v", found, err)
		}
		if states, err := runfolder.Snapshots(folder); err != nil || len(states) > 0 {
			t.Errorf("after Find states are left: %q, %v", states, err)
		}
	}
}
