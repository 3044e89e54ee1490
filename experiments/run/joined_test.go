package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// The experiment makes a folder a run: it comes after the best model, as that of a quantized run.
func TestTheExperimentOfAJoinedRunIsWrittenLast(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, runfolder.ExperimentFile), 0o755); err != nil { // no file replaces it
		t.Fatal(err)
	}
	joined := Joined{Experiment: mustRead(t, sample.Small(t, "")), Location: EncoderLocation{Folder: t.TempDir()}}
	if err := joined.writeFiles(folder); err == nil {
		t.Fatal("a folder is replaced by the experiment")
	}
	if !runfolder.HasBest(folder) || !runfolder.Exists(filepath.Join(folder, runfolder.MetricsFile)) {
		t.Error("something is written after the experiment")
	}
}
