package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

var errKilled = errors.New("killed")

// killAt is an observer that ends a training after a step, of which no checkpoint is then saved.
func killAt(number int) func(train.Event) error {
	return func(event train.Event) error {
		if step, ok := event.(train.Step); ok && step.Number == number {
			return errKilled
		}
		return nil
	}
}

// killResumed resumes a run from a checkpoint until a step.
func killResumed(t *testing.T, folder, checkpoint string, number int) {
	t.Helper()
	_, err := resumedRun(t, checkpoint).Train(context.Background(), folder, killAt(number))
	if !errors.Is(err, errKilled) {
		t.Fatalf("Train = %v, want that it ends after step %d", err, number)
	}
}

func kept(folder string, step int) string {
	return filepath.Join(folder, runfolder.CheckpointsDir, fmt.Sprint("step-", step))
}

// byTwoSteps trains with an evaluation every 3 steps, the epoch.
var byTwoSteps = []string{"training.num_epochs=5", "training.save_strategy=steps", "training.save_steps=2",
	"training.save_total_limit=0"}

func TestARunThatIsResumedFromAnEarlierCheckpointAndKilledCanBeResumed(t *testing.T) {
	path, whole := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, whole, byTwoSteps...)
	want := result(t, whole)
	for _, number := range []int{5, 6, 8} {
		folder := filepath.Join(t.TempDir(), "run")
		interruptIn(t, folder, path, 14, byTwoSteps...)
		killResumed(t, folder, kept(folder, 4), number)
		if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("killed at step %d", number)
		checkSameResult(t, what, result(t, folder), want)
		steps, err := runfolder.Steps(filepath.Join(folder, runfolder.CheckpointsDir))
		if want := []int{2, 3, 4, 6, 8, 9, 10, 12, 14, 15}; err != nil || !slices.Equal(steps, want) {
			t.Errorf("%s: checkpoints of steps %v, %v; want %v", what, steps, err, want)
		}
	}
}

func TestLaterCheckpointsAreRemovedWhereARunGoesOnFromAnEarlierOne(t *testing.T) {
	folder := interruptedRun(t, 14, byTwoSteps...)
	killResumed(t, folder, kept(folder, 4), 5)
	steps, err := runfolder.Steps(filepath.Join(folder, runfolder.CheckpointsDir))
	if want := []int{2, 3, 4}; err != nil || !slices.Equal(steps, want) {
		t.Errorf("checkpoints of steps %v, %v; want %v", steps, err, want)
	}
	found, err := resume.Find(t.Context(), folder)
	if err != nil || found.Point.State.Step != 4 {
		t.Errorf("the last checkpoint: %+v, %v; want that of step 4", found, err)
	}
}

// model returns the files of a checkpoint that are its model.
func modelFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := sample.Files(t, folder)
	delete(all, runfolder.SnapshotFile)
	return all
}

// abandonedRun returns a run whose best model is that of step 3 as of step 4, and a later one as of its last step.
func abandonedRun(t *testing.T) (folder string) {
	t.Helper()
	folder = interruptedRun(t, 14, slices.Concat(byTwoSteps, []string{"training.metric_for_best_model=eval_loss"})...)
	if maps.Equal(modelFiles(t, filepath.Join(folder, runfolder.BestDir)), modelFiles(t, kept(folder, 3))) {
		t.Fatal("the best model is still that of step 3")
	}
	return folder
}

// diverge resumes a run from the checkpoint of step 4 with a learning rate that makes it worse.
func diverge(t *testing.T, folder string, observe func(train.Event) error) (best train.Evaluation, err error) {
	t.Helper()
	found, err := resume.Find(t.Context(), kept(folder, 4))
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"training.learning_rate=3", "training.on_bad_loss=skip"}
	r, err := Resume(t.Context(), mustRead(t, found.File, sets...), found.Point, nil, []string{"experiment"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Train(context.Background(), folder, observe)
	return done.Best, err
}

func TestTheBestOfAnEarlierCheckpointIsRestored(t *testing.T) {
	folder := abandonedRun(t)
	want := modelFiles(t, kept(folder, 3))
	best, err := diverge(t, folder, ignore)
	if err != nil || best.Step != 3 {
		t.Fatalf("the best evaluation is that of step %d, %v; want 3", best.Step, err)
	}
	if got := modelFiles(t, filepath.Join(folder, runfolder.BestDir)); !maps.Equal(got, want) {
		t.Error("the best model is not that of step 3")
	}
}

func TestABestThatIsNotKeptIsSelectedAnew(t *testing.T) {
	folder := abandonedRun(t)
	removeAll(t, kept(folder, 3))
	removeAll(t, filepath.Join(folder, runfolder.TasksDir)) // they may have it too
	var warnings []string
	warned := func(event train.Event) error {
		if w, ok := event.(train.Warning); ok {
			warnings = append(warnings, w.Text)
		}
		return killAt(5)(event)
	}
	best := filepath.Join(folder, runfolder.BestDir)
	if _, err := diverge(t, folder, warned); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if len(warnings) == 0 || !strings.HasPrefix(warnings[0],
		best+": it is not the best model of the run until step 4") {
		t.Errorf("warnings %q", warnings)
	}
	if runfolder.Exists(best) {
		t.Error("the best model of the abandoned training is left")
	}

	// after the kill
	done, err := resumedRun(t, folder, "experiment").Train(context.Background(), folder, ignore)
	if err != nil || done.Best.Step < 6 {
		t.Fatalf("the best evaluation is that of step %d, %v; want a later one than 4", done.Best.Step, err)
	}
	if got := modelFiles(t, best); !maps.Equal(got, modelFiles(t, kept(folder, done.Best.Step))) {
		t.Errorf("the best model is not that of step %d", done.Best.Step)
	}
}

func TestALimitOfOneRemovesKeptCheckpoints(t *testing.T) {
	folder := interruptedRun(t, 14, byTwoSteps...)
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resume(t.Context(), mustRead(t, found.File, "training.save_total_limit=1"), found.Point, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(folder, runfolder.CheckpointsDir))
	if err != nil || len(left) > 0 {
		t.Errorf("checkpoints %v, %v; want none", left, err)
	}
}

// A search for a whole checkpoint may run beside a training that writes to the folder.
func TestASearchForACheckpointChangesNothing(t *testing.T) {
	folder := interruptedRun(t, 14, byTwoSteps...)
	if err := os.Rename(kept(folder, 4), kept(folder, 4)+runfolder.OldSuffix); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{6, 8, 9, 10, 11} {
		removeAll(t, kept(folder, step))
	}
	if err := os.Mkdir(kept(folder, 12)+runfolder.NewSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	before := sample.Files(t, folder)
	last, want := filepath.Join(folder, runfolder.LastDir), kept(folder, 4)+runfolder.OldSuffix
	for but, want := range map[string]string{"": last, last: want} {
		err := resume.WithRemedy(t.Context(), errKilled, folder, but)
		if !strings.Contains(err.Error(), "\n"+want+" is whole: ") {
			t.Errorf("%v, want that %s is whole", err, want)
		}
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) ||
		!runfolder.Exists(kept(folder, 12)+runfolder.NewSuffix) {
		t.Error("the run folder has changed")
	}
}

// The best evaluation so far is compared with later ones by the metric that selects now.
func TestAChangedMetricSelectsAnew(t *testing.T) {
	folder := interruptedRun(t, 9, "training.num_epochs=4")
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	e := mustRead(t, found.File, "training.metric_for_best_model=eval_team_team_f1_macro",
		"training.learning_rate=1e-9")
	r, err := Resume(t.Context(), e, found.Point, nil, []string{"experiment"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Train(context.Background(), folder, ignore)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := e.Training.Selection.Value(done.Best.Groups); err != nil || done.Value != want {
		t.Errorf("the best evaluation has %v, want %v, %v", done.Value, want, err)
	}
}
