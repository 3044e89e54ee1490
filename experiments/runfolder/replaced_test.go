package runfolder

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// killed is what a folder holds when a training that replaces a run was killed.
type killed struct {
	old bool // the earlier run is kept, otherwise the new one
	// leave makes it of the folder with the earlier run, and another with the new one.
	leave func(t *testing.T, fresh string)
}

// killings returns what a kill leaves at each moment of a replacement.
func killings(folder string) map[string]killed {
	aside := filepath.Join(folder, ReplacedDir)
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
			moveAll(t, fresh, folder, []string{MetricsFile, ExperimentFile})
			for _, name := range replacedNames[:i] {
				removeAll(t, filepath.Join(folder, name))
			}
		}}
		states["removing it"+n] = killed{false, func(t *testing.T, fresh string) {
			moveAll(t, folder, aside, replacedNames)
			moveAll(t, fresh, folder, replacedNames)
			if err := os.Rename(aside, aside+OldSuffix); err != nil {
				t.Fatal(err)
			}
			for _, name := range backwards()[:i] {
				removeAll(t, filepath.Join(aside+OldSuffix, name))
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
	folder := filepath.Join(home, "run")
	run := func(text string) string {
		files := map[string]string{}
		for _, name := range []string{ExperimentFile, MetricsFile, "best/model.json", "best/encoder/model.safetensors",
			"last/model.json", "tasks/team/model.json", "checkpoints/step-2/model.json"} {
			files[name] = text
		}
		return sample.Folder(t, files)
	}
	first, second := run("the old"), run("the new")
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
		if err := CheckFree(folder, false); err == nil ||
			!strings.Contains(err.Error(), "holds a run") {
			t.Errorf("%s: CheckFree = %v", name, err)
		}
		_, _, err := Find(folder)
		if err != nil && !strings.Contains(err.Error(), ReplacedDir) {
			t.Errorf("%s: Find = %v, want a model, or where the earlier run is", name, err)
		}

		// the next training finds a whole run
		if err := Settle(folder); err != nil {
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

// A run that a kill or a signal has ended is not replaced without a word of how it goes on.
func TestAFolderWithAnUnfinishedRunSaysHowItGoesOn(t *testing.T) {
	folder := sample.Folder(t, map[string]string{
		ExperimentFile: "x", MetricsFile: "x", "last/model.json": "x", "last/" + SnapshotFile: "x",
	})
	want := folder + " holds a run whose training did not end: argument resume " + folder + " goes on with it; or name " +
		"another folder by argument out, or replace it by argument force"
	if err := CheckFree(folder, false); err == nil || err.Error() != want {
		t.Errorf("CheckFree = %v, want %s", err, want)
	}
	if err := CheckFree(folder, true); err != nil {
		t.Errorf("CheckFree by force = %v", err)
	}
}
