package experiments

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frozenExperiment writes the small experiment over a frozen encoder that lies in a folder of its own, base.
func frozenExperiment(t *testing.T) (path, base string) {
	t.Helper()
	path = smallExperiment(t, "")
	trained := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, trained, "training.num_epochs=2")
	base = filepath.Join(t.TempDir(), "base")
	if err := os.CopyFS(base, os.DirFS(filepath.Join(trained, bestDir, encoderDir))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	based := strings.Replace(string(text), "encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}", "base_model: "+base+"\n  freeze: all", 1)
	based = strings.Replace(based, ", train: {vocab_size: 200}", "", 1)
	if err := os.WriteFile(path, []byte(based), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, base
}

func TestAFrozenEncoderIsNotCopied(t *testing.T) {
	path, _ := frozenExperiment(t)
	home := t.TempDir()
	real, link := filepath.Join(home, "deep", "down"), filepath.Join(home, "link")
	if err := os.MkdirAll(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	_, done := trainSmall(t, path, filepath.Join(link, "run"))
	for _, name := range []string{"link/run", "link/run/best", "link/run/last", "link/run/tasks/team", "link/run/tasks/things", "deep/down/run"} {
		folder := filepath.Join(home, name)
		if isThere(filepath.Join(folder, encoderDir)) {
			t.Errorf("%s holds a frozen encoder", name)
		}
		run, err := OpenRun(folder)
		if err != nil {
			t.Errorf("OpenRun(%s): %v", name, err)
			continue
		}
		if name != "link/run" {
			continue
		}
		if err := run.Read(Dev, "", nil); err != nil {
			t.Fatal(err)
		}
		scores, err := run.Evaluate(context.Background(), Dev, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Figures(scores)["eval_overall"], done.Value; got != want {
			t.Errorf("eval_overall = %v, want %v", got, want)
		}
	}
}

func TestAFrozenEncoderIsTheOneOfTheTraining(t *testing.T) {
	path, base := frozenExperiment(t)
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")

	weights := filepath.Join(base, "model.safetensors")
	data, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(weights, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(folder); err == nil || !strings.Contains(err.Error(), "is not the one it was trained with") {
		t.Errorf("with other weights OpenRun = %v", err)
	}
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(folder); err == nil || !strings.Contains(err.Error(), "the frozen encoder it was trained with is not in "+base+"; want it there") {
		t.Errorf("without the encoder OpenRun = %v", err)
	}
}

func TestACheckpointOpensWhereItsRunIs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, smallExperiment(t, ""), folder, "training.num_epochs=1")
	for _, name := range []string{"best", "last", "tasks/team"} {
		t.Chdir(filepath.Join(folder, name))
		if _, err := OpenRun("."); err != nil {
			t.Errorf("OpenRun within %s: %v", name, err)
		}
	}

	// a kill between the two renames of replace
	last := filepath.Join(folder, lastDir)
	if err := os.Rename(last, last+oldSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(last); err != nil {
		t.Errorf("OpenRun after a kill: %v", err)
	}

	// an experiment file further up is another's
	alone := filepath.Join(folder, "some", "where", "alone")
	if err := os.CopyFS(alone, os.DirFS(filepath.Join(folder, bestDir))); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(alone); err == nil || !strings.Contains(err.Error(), "a model, but no experiment.yaml above it") {
		t.Errorf("OpenRun of a model without a run = %v", err)
	}
}

func TestAWeightThatIsNoNumberIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, smallExperiment(t, ""), folder, "training.num_epochs=1")
	for _, w := range run.ownParams() {
		w.Data[len(w.Data)-1] = float32(math.NaN())
	}
	if err := run.save(filepath.Join(folder, bestDir)); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(folder, bestDir, tensorsFile) + `: tensor "heads.team.team.score.bias" has NaN at place 1; want numbers that are finite`
	if _, err := OpenRun(folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("OpenRun = %v, want %s among it", err, want)
	}
}

func TestReplaceLeavesAWholeFolderAtAnyMoment(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "best")
	write := func(text string) func(string) error {
		return func(fresh string) error { return os.WriteFile(filepath.Join(fresh, "a"), []byte(text), 0o644) }
	}
	if err := replace(folder, write("one")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk full")
	if err := replace(folder, func(string) error { return broken }); err != broken {
		t.Errorf("replace = %v, want %v", err, broken)
	}
	if got := files(t, folder)["a"]; got != "one" {
		t.Errorf("after a failed write the folder holds %q", got)
	}
	// a kill between the two renames
	if err := os.Rename(folder, folder+oldSuffix); err != nil {
		t.Fatal(err)
	}
	if got := files(t, whole(folder))["a"]; got != "one" {
		t.Errorf("after a kill there is %q", got)
	}
	if err := replace(folder, write("two")); err != nil {
		t.Fatal(err)
	}
	if got := files(t, whole(folder))["a"]; got != "two" {
		t.Errorf("after the next write there is %q", got)
	}
}
