package run

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// keptBest returns a run that was interrupted after step 4, whose best model is that of step 3, and its best folder.
func keptBest(t *testing.T, sets ...string) (folder, best string) {
	t.Helper()
	folder = interruptedRun(t, 5, slices.Concat([]string{"training.num_epochs=3", "training.save_strategy=steps",
		"training.save_steps=2"}, sets)...)
	return folder, filepath.Join(folder, runfolder.BestDir)
}

// trainFrom resumes a run, and returns the warnings and the error of its training.
func trainFrom(t *testing.T, folder string) (warnings []string, since int, err error) {
	t.Helper()
	done, err := resumedRun(t, folder).Train(context.Background(), folder, func(event train.Event) error {
		if w, ok := event.(train.Warning); ok {
			warnings = append(warnings, w.Text)
		}
		return nil
	})
	return warnings, done.Since, err
}

// replaceFlipped makes a file a damaged one of its own: that of a checkpoint may be a link to that of another.
func replaceFlipped(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	removeAll(t, path)
	sample.Write(t, path, string(data))
	flip(t, path)
}

func TestADamagedBestIsRestoredFromAKeptCheckpoint(t *testing.T) {
	for name, damage := range map[string]struct {
		file string
		do   func(t *testing.T, path string)
	}{
		"a flipped bit":     {runfolder.TensorsFile, replaceFlipped},
		"a missing file":    {runfolder.ModelFile, removeAll},
		"missing checksums": {runfolder.ChecksumsFile, removeAll},
		"a missing folder":  {"", removeAll},
	} {
		t.Run(name, func(t *testing.T) {
			folder, best := keptBest(t, "training.save_total_limit=0")
			want := modelFiles(t, best)
			path := filepath.Join(best, damage.file)
			damage.do(t, path)
			var restored map[string]string
			r := resumedRun(t, folder)
			r.Restored = func(report.State, string) { restored = modelFiles(t, best) }
			var warning string
			_, err := r.Train(context.Background(), folder, func(event train.Event) error {
				if w, ok := event.(train.Warning); ok && warning == "" {
					warning = w.Text
				}
				return nil
			})
			end := ": it is restored from " + kept(folder, 3) + ", which has the same model"
			if err != nil || !strings.HasPrefix(warning, path+": ") || !strings.HasSuffix(warning, end) {
				t.Errorf("Train = %v, with the warning %q; want %s…%s", err, warning, path, end)
			}
			if !maps.Equal(restored, want) {
				t.Error("the best model is not that of step 3")
			}
		})
	}
}

func TestADamagedBestThatNoCheckpointHasIsRefused(t *testing.T) {
	folder, best := keptBest(t)
	task := filepath.Join(folder, runfolder.TasksDir, "team")
	for _, path := range []string{best, task} {
		for _, other := range []string{"things", "team"} { // which may be of the same step
			removeAll(t, filepath.Join(path, runfolder.TensorsFile))
			removeAll(t, filepath.Join(folder, runfolder.TasksDir, other, runfolder.TensorsFile))
		}
	}
	before := sample.Files(t, folder)
	done, err := resumedRun(t, folder).Train(context.Background(), folder, ignore)
	if err == nil || done.Folder != "" || done.Resume != "" { // from which the same command would go on
		t.Fatalf("Train of a damaged best model = %+v, %v", done, err)
	}
	for path, of := range map[string]string{best: "the run", task: `task "team"`} {
		want := filepath.Join(path, runfolder.TensorsFile) + ": no such file: the checkpoint is incomplete, and no " +
			"kept checkpoint has the same model, the best model of " + of + " until step 4; restore the file from a " +
			"copy, or remove " + path + ": " + anew
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Train = %v, want %s", err, want)
		}
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("the run folder has changed")
	}

	// what the error says works
	removeAll(t, best)
	removeAll(t, filepath.Join(folder, runfolder.TasksDir))
	warnings, since, err := trainFrom(t, folder)
	want := best + ": no such folder: the best model of the run until step 4 is gone, and no kept checkpoint has it; " +
		anew
	if err != nil || since != 4 || !slices.Contains(warnings, want) {
		t.Errorf("Train = %v, since step %d, with the warnings %q; want %q", err, since, warnings, want)
	}
	for _, path := range []string{best, task} {
		if err := runfolder.CheckChecksums(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}

func TestADamagedBestIsRestoredFromThatOfATask(t *testing.T) {
	folder, best := keptBest(t)
	of := filepath.Join(folder, runfolder.TasksDir, "team")
	if !maps.Equal(modelFiles(t, of), modelFiles(t, best)) {
		t.Fatalf("%s is not the best model of the run", of)
	}
	removeAll(t, filepath.Join(best, runfolder.ModelFile))
	warnings, _, err := trainFrom(t, folder)
	if err != nil || len(warnings) == 0 || !strings.Contains(warnings[0], ": it is restored from "+of) {
		t.Errorf("Train = %v, with the warnings %q; want that it is restored from %s", err, warnings, of)
	}
}

// Of a best that is a copy of the last checkpoint, what is damaged is a warning too. A kill may have come before the
// copy: that it is missing is none.
func TestADamagedCopyOfTheLastCheckpointIsRestoredFromIt(t *testing.T) {
	for name, damage := range map[string]struct {
		file string
		do   func(t *testing.T, path string)
		warn bool
	}{
		"a flipped bit":    {runfolder.TensorsFile, replaceFlipped, true},
		"a missing file":   {runfolder.ModelFile, removeAll, true},
		"a missing folder": {"", removeAll, false},
		"none":             {"", func(*testing.T, string) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := interruptedRun(t, 4, "training.num_epochs=3", "training.save_strategy=epoch")
			r := resumedRun(t, folder)
			last := filepath.Join(folder, runfolder.LastDir)
			for _, of := range []string{runfolder.BestDir, filepath.Join(runfolder.TasksDir, "team")} {
				if !slices.Contains(r.resumed.State.Links, of) {
					t.Fatalf("%s is no copy of %s", of, last)
				}
			}
			best := filepath.Join(folder, runfolder.BestDir)
			path := filepath.Join(best, damage.file)
			damage.do(t, path)
			var restored map[string]string
			r.Restored = func(report.State, string) { restored = modelFiles(t, best) }
			want := modelFiles(t, last)
			var mended []string
			_, err := r.Train(context.Background(), folder, func(event train.Event) error {
				if w, ok := event.(train.Warning); ok && strings.Contains(w.Text, "it is restored from") {
					mended = append(mended, w.Text)
				}
				return nil
			})
			end := ": it is restored from " + last + ", which has the same model"
			switch {
			case err != nil || (len(mended) > 0) != damage.warn:
				t.Errorf("Train = %v, with the warnings %q", err, mended)
			case damage.warn && (!strings.HasPrefix(mended[0], path+": ") || !strings.HasSuffix(mended[0], end)):
				t.Errorf("the warning %q; want %s…%s", mended[0], path, end)
			}
			if !maps.Equal(restored, want) {
				t.Error("the best model is not that of the last checkpoint")
			}
		})
	}
}
