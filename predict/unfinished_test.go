package predict

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestARunThatIsBeingTrainedSaysSo(t *testing.T) {
	e, err := config.Read(t.Context(), sample.Small(t, ""), []string{"training.num_epochs=2"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := ready(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	folder, seen := filepath.Join(t.TempDir(), "run"), false
	want := folder + ": warning: this run is still being trained (step 3 of 6)"
	if _, err := run.Train(context.Background(), folder, func(event train.Event) error {
		if step, ok := event.(train.Step); ok && step.Number == 4 {
			seen = true
			for began := time.Now(); !runfolder.HasBest(folder) && time.Since(began) < time.Minute; {
				time.Sleep(time.Millisecond) // it is written while training goes on
			}
			opened, err := OpenRun(t.Context(), folder)
			if err != nil || len(opened.Warnings) != 1 || opened.Warnings[0].String() != want {
				t.Errorf("Open = %v, warnings %q, want %q", err, opened.Warnings, want)
			}
		}
		return nil
	}); err != nil || !seen {
		t.Fatal(err)
	}
	if opened, err := OpenRun(t.Context(), folder); err != nil || len(opened.Warnings) > 0 {
		t.Errorf("after training: %v, warnings %q", err, opened.Warnings)
	}

	// a lock that cannot be read
	metrics, lock := filepath.Join(folder, runfolder.MetricsFile), filepath.Join(folder, runfolder.LockFile)
	if err := os.Mkdir(lock, 0o755); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.LastIndex(whole, []byte(`{"event":"done"`))
	if err := os.WriteFile(metrics, whole[:end], 0o644); err != nil {
		t.Fatal(err)
	}
	want = folder + ": warning: training of this run was interrupted, or still goes on (step 6 of 6): " + lock +
		": a folder; want a regular file"
	opened, err := OpenRun(t.Context(), folder)
	if err != nil || len(opened.Warnings) != 1 || opened.Warnings[0].String() != want {
		t.Errorf("Open = %v, warnings %q, want %q", err, opened.Warnings, want)
	}
	remove(t, lock)

	// copied without its metrics
	remove(t, filepath.Join(folder, runfolder.MetricsFile))
	if opened, err := OpenRun(t.Context(), folder); err != nil || len(opened.Warnings) > 0 {
		t.Errorf("without metrics: %v, warnings %q", err, opened.Warnings)
	}
}
