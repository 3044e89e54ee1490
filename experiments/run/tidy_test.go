package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// A state that cannot be removed, as in a copy that is read-only, does not make a run unfinished.
func TestAStateThatStaysLeavesARunFinished(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	state := filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	sample.Write(t, filepath.Join(state, "file"), "") // a folder that is not empty is not removed
	if found, err := resume.Find(t.Context(), folder); err != nil || !found.Done() {
		t.Errorf("FindUnfinished = %+v, %v", found, err)
	}
}
