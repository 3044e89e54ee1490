package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestARunThatSavesNoStatesSaysSo(t *testing.T) {
	folder := interruptedRun(t, 6, "training.save_strategy=no")
	if err := os.Remove(filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)); err != nil {
		t.Fatal(err) // as a kill leaves it
	}
	_, err := resume.Find(t.Context(), folder)
	want := filepath.Join(folder, runfolder.LastDir) + ": it has no state to resume from: " +
		filepath.Join(folder, runfolder.ExperimentFile) + " has training.save_strategy: no\nno other checkpoint of " +
		folder + " can be resumed from: train on from its best model in a new run, with model.base_model: " + folder +
		", or train again with argument force"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestOtherCheckpointsLeaveTheLast names a checkpoint without a state, and one of which a file is missing.
func TestOtherCheckpointsLeaveTheLast(t *testing.T) {
	folder := interruptedRun(t, 8, "training.save_strategy=steps", "training.save_steps=2", "training.num_epochs=4",
		"training.save_total_limit=0")
	last := filepath.Join(folder, runfolder.LastDir)
	broken := filepath.Join(folder, runfolder.CheckpointsDir, "step-2")
	if err := os.Remove(filepath.Join(broken, runfolder.ModelFile)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, runfolder.BestDir): "training.snapshot: no such file: ",
		broken:                                   "model.json: no such file: the checkpoint is incomplete",
	} {
		u, err := resume.Find(t.Context(), path)
		if err == nil {
			_, err = Resume(t.Context(), mustRead(t, u.File), u.Point, nil, nil)
		}
		remedy := last + " is whole: resume from it by argument resume " + last
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), remedy) {
			t.Errorf("resumed from %s: %v, want %s and %s", path, err, want, remedy)
		}
	}
	if _, err := resumedRun(t, last).Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}
}

// TestMetricsThatDifferLeaveEarlierCheckpoints changes a line that only the last checkpoints were written after.
func TestMetricsThatDifferLeaveEarlierCheckpoints(t *testing.T) {
	folder := interruptedRun(t, 8, "training.save_strategy=steps", "training.save_steps=2",
		"training.save_total_limit=0", "training.num_epochs=4", "training.logging_steps=1")
	path := filepath.Join(folder, runfolder.MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"step":5,`, `"step":6,`, 1)
	if changed == string(text) {
		t.Fatalf("no step 5 in\n%s", text)
	}
	sample.Write(t, path, changed)
	_, err = resumedRun(t, folder).Train(context.Background(), folder, ignore)
	kept := filepath.Join(folder, runfolder.CheckpointsDir, "step-4")
	want := "\n" + kept + " is whole: resume from it by argument resume " + kept
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Fatalf("Train = %v", err)
	}
	if _, err := resumedRun(t, kept).Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}
}

// TestADamagedLineOfMetricsLeavesCheckpointsWithoutIt changes the last line of evaluations so that it is no JSON: one
// that the last checkpoint was written after, and one that is written again.
func TestADamagedLineOfMetricsLeavesCheckpointsWithoutIt(t *testing.T) {
	folder := interruptedRun(t, 10, byTwoSteps...)
	path := filepath.Join(folder, runfolder.MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), `{"event":"eval"`)
	changed := string(text[:at]) + strings.Replace(string(text[at:]), `"split":`, `"split"z`, 1)
	line := strings.Count(string(text[:at]), "\n") + 1
	sample.Write(t, path, changed)
	_, err = resume.Find(t.Context(), folder)
	whole := kept(folder, 4)
	want := fmt.Sprintf("%s:%d: the last line of event \"eval\": invalid character 'z' after object key; restore the "+
		"file from a copy\n%s is whole: resume from it by argument resume %[3]s", path, line, whole)
	if err == nil || err.Error() != want {
		t.Fatalf("FindUnfinished = %v, want %s", err, want)
	}
	if _, err := resumedRun(t, whole).Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}

	// a line that is written again
	folder = interruptedRun(t, 10, byTwoSteps...)
	path = filepath.Join(folder, runfolder.MetricsFile)
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	sample.Write(t, path, string(text)+`{"event":"eval","split"z`+"\n")
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}
}

func TestResumeWritesSplitsThatAreGone(t *testing.T) {
	folder := interruptedRun(t, 6)
	path := filepath.Join(folder, runfolder.SplitsFile)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%s is %q, %v, want %q", path, got, err, want)
	}
}
