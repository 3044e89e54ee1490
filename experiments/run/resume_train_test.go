package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
)

// countdown is a context that is cancelled when it has been asked for its error a number of times: before a step, and
// before each batch of an evaluation.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// result returns the files of a run that do not depend on when it was interrupted.
func result(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := sample.Files(t, folder)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, runfolder.CheckpointsDir) })
	delete(all, filepath.Join(runfolder.LastDir, runfolder.EndFile)) // it has the seconds of the training
	all[runfolder.MetricsFile] = shared.WithoutTimes(all[runfolder.MetricsFile])
	return all
}

func checkSameResult(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("%s: files %v, want %v", what, names, slices.Sorted(maps.Keys(want)))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is not that of the training without interruption", what, name)
		}
	}
}

// resumedRun prepares the run of a folder to go on.
func resumedRun(t *testing.T, folder string, allowed ...string) *Run {
	t.Helper()
	found, err := resume.Find(t.Context(), folder)
	if err != nil || found.Checkpoint == "" {
		t.Fatalf("nothing to resume in %s: %+v, %v", folder, found, err)
	}
	r, err := Resume(t.Context(), mustRead(t, found.File), found.Point, nil, allowed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnInterruptedTrainingGoesOnWithTheSameBytes(t *testing.T) {
	base := []string{"training.num_epochs=4", "training.ema=0.9", "training.gradient_accumulation_steps=2",
		"training.early_stopping_patience=2", "training.logging_steps=3"}
	for name, sets := range map[string][]string{
		"by epochs": {"training.weighting=uncertainty"},
		"by steps": {"training.save_strategy=steps", "training.save_steps=3",
			"training.save_total_limit=2"},
		"without evaluations":  {"training.eval_strategy=no", "training.early_stopping_patience=0"},
		"evaluations by steps": {"training.eval_strategy=steps", "training.eval_steps=2", "training.optimizer=sgd"},
		"without a state":      {"training.save_strategy=no"},
		"all checkpoints, again": {"training.save_strategy=minutes", "training.save_minutes=0.0001",
			"training.save_total_limit=0"},
	} {
		t.Run(name, func(t *testing.T) {
			path, sets := sample.Small(t, ""), append(slices.Clone(base), sets...)
			whole := filepath.Join(t.TempDir(), "run")
			trainSmall(t, path, whole, sets...)
			want := result(t, whole)
			for _, first := range []int{2, 5, 7, 8, 12} {
				folder := filepath.Join(t.TempDir(), "run")
				trainWithInterruptions(t, path, folder, first, sets...)
				checkSameResult(t, name, result(t, folder), want)
			}
		})
	}
}

// trainWithInterruptions trains a run that is interrupted at the first check of the context of a number, and goes on
// until one check later, and so on.
func trainWithInterruptions(t *testing.T, path, folder string, first int, sets ...string) {
	t.Helper()
	r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	for times := 0; ; times++ {
		left := first + times
		_, err := r.Train(countdown{context.Background(), &left}, folder, ignore)
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) || times > 20 {
			t.Fatal(err)
		}
		r = resumedRun(t, folder)
	}
}

func TestAnInterruptedTrainingOfAGrownRunGoesOnWithTheSameBytes(t *testing.T) {
	baseRun(t)
	for model, training := range map[string]string{
		"{base_model: base, keep_tasks: all}":                               "rehearse: 0.5",
		"{base_model: base, keep_tasks: all, dropout: 0.1}":                 "rehearse: 0",
		"{base_model: base, freeze: all, keep_tasks: all}":                  "ema: 0.9",
		"{base_model: base, keep_tasks: all, lora: {per_task: true, r: 2}}": "eval_strategy: steps, eval_steps: 3",
		"{base_model: base}": "eval_strategy: no",
	} {
		t.Run(model, func(t *testing.T) {
			path := growing(t, model, "training: {learning_rate: 0.02, num_epochs: 3, batch_size: 8, "+training+"}\n")
			trainSmall(t, path, "whole")
			want := result(t, "whole")
			for _, first := range []int{2, 5, 9} {
				folder := fmt.Sprintf("interrupted%d", first)
				trainWithInterruptions(t, path, folder, first)
				checkSameResult(t, model, result(t, folder), want)
			}
			for _, folder := range []string{"whole", "interrupted2", "interrupted5", "interrupted9"} {
				if err := os.RemoveAll(folder); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// interruptedRun trains a run until its nth check of the context, and returns its folder.
func interruptedRun(t *testing.T, n int, sets ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, sample.Small(t, ""), n, sets...)
	return folder
}

func interruptIn(t *testing.T, folder, path string, n int, sets ...string) {
	t.Helper()
	r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(countdown{context.Background(), &n}, folder, ignore); !errors.Is(err, context.Canceled) {
		t.Fatalf("Train = %v", err)
	}
}

func TestAnotherExperimentOrProgramIsRefused(t *testing.T) {
	folder := interruptedRun(t, 6)
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	before := sample.Files(t, folder)
	refuses := func(sets []string, allowed []string, want ...string) {
		t.Helper()
		_, err := Resume(t.Context(), mustRead(t, found.File, sets...), found.Point, nil, allowed)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("with %v Resume = %v, want %s", sets, err, part)
			}
		}
		if len(want) == 0 && err != nil {
			t.Errorf("with %v Resume = %v", sets, err)
		}
	}
	refuses([]string{"training.learning_rate=0.5", "tasks.team.heads.team.type=mlp"}, nil,
		found.Checkpoint+": what differs", "experiment: training.learning_rate: was 0.01, is 0.5\n",
		"experiment: tasks.team.heads.team.type: was linear, is mlp\n", "argument allow-changes experiment")
	refuses([]string{"training.save_strategy=no", "project_name=other"}, nil)
	refuses([]string{"training.learning_rate=0.5"}, []string{"experiment"})
	state := &found.Point.State
	state.Build = checkpoint.Version + " 0123456789ab go1.25 " + runtime.GOOS + "/" + runtime.GOARCH
	refuses(nil, nil, "jenga: was "+state.Build+", is "+checkpoint.Build()+"\n", "argument allow-changes jenga")
	state.Build, state.Kernels = "0.0.1", "other"
	refuses(nil, nil, "jenga: was 0.0.1, is "+checkpoint.Build()+"\n",
		"kernels: was other (JENGA_KERNEL=other selects them), is ",
		"argument allow-changes jenga,kernels")
	refuses(nil, []string{"jenga"}, "kernels: was other")
	refuses(nil, []string{"jenga", "kernels"})
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("the run folder has changed")
	}
}

func TestAChangedExperimentGoesOnWhereThatIsAllowed(t *testing.T) {
	folder := interruptedRun(t, 6, "training.num_epochs=4")
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	e := mustRead(t, found.File, "training.learning_rate=0.5")
	r, err := Resume(t.Context(), e, found.Point, nil, []string{"experiment"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	if e := mustRead(t, filepath.Join(folder, runfolder.ExperimentFile)); e.Training.Rate != 0.5 {
		t.Errorf("the run's experiment has the learning rate %v", e.Training.Rate)
	}
}

func TestOtherDataIsRefused(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, path, 6, "training.num_epochs=4")
	data := filepath.Join(filepath.Dir(path), "mails.jsonl")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, data, strings.ReplaceAll(string(text), `"invoice"`, `"fee"`))
	before := sample.Files(t, folder)
	_, err = resumedRun(t, folder).Train(context.Background(), folder, ignore)
	const want = `data: training examples of task "team", as number:checksum: was 24:`
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), "argument allow-changes data") {
		t.Errorf("Train = %v, want %s", err, want)
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("the run folder has changed")
	}
	if _, err := resumedRun(t, folder, "data").Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}
}

// What a kill leaves beside a checkpoint that is written: the one before, of which a part is removed.
func TestResumeRemovesWhatAKillHasLeft(t *testing.T) {
	path := sample.Small(t, "")
	whole, folder := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, whole, "training.num_epochs=2")
	interruptIn(t, folder, path, 7, "training.num_epochs=2")
	last := filepath.Join(folder, runfolder.LastDir)
	for _, name := range []string{last + runfolder.OldSuffix, last + runfolder.NewSuffix} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		sample.Write(t, filepath.Join(name, runfolder.TensorsFile), "a part of it")
	}
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	checkSameResult(t, "after a kill", result(t, folder), result(t, whole))

	// between the two renames
	folder = filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, path, 7, "training.num_epochs=2")
	last = filepath.Join(folder, runfolder.LastDir)
	if err := os.Rename(last, last+runfolder.OldSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	checkSameResult(t, "after a kill between two renames", result(t, folder), result(t, whole))

	// after the last line
	sample.Write(t, filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile), "")
	sample.Write(t, filepath.Join(folder, runfolder.LockFile), "")
	if found, err := resume.Find(t.Context(), folder); err != nil || !found.Done() {
		t.Errorf("a run that is finished: %+v, %v", found, err)
	}
	checkSameResult(t, "after a kill at the end", result(t, folder), result(t, whole))
}

func TestAResumedTrainingThatEndsBeforeItsFirstStepNamesItsCheckpoint(t *testing.T) {
	folder := interruptedRun(t, 6)
	r := resumedRun(t, folder)
	last := r.resumed.Checkpoint
	file := filepath.Join(folder, runfolder.ExperimentFile)
	removeAll(t, file)
	if err := os.Mkdir(file, 0o755); err != nil { // it cannot be read, nor written
		t.Fatal(err)
	}
	done, err := r.Train(t.Context(), folder, ignore)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("Train = %v", err)
	}
	if done.Folder != folder || done.Resume != last || done.Step == 0 {
		t.Errorf("Done = %+v, want a step in %s, to resume from %s", done, folder, last)
	}
}

func TestACopyThatARunDoesNotHaveIsRefused(t *testing.T) {
	folder := interruptedRun(t, 6)
	r := resumedRun(t, folder)
	r.resumed.State.Links = []string{"other"}
	done, err := r.Train(t.Context(), folder, ignore)
	if err == nil || !strings.Contains(err.Error(), `unexpected copy "other"`) || done.Resume != "" {
		t.Errorf("Train = %+v, %v", done, err)
	}
}
