package runfolder

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestReplaceLeavesAWholeFolderAtAnyMoment(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "best")
	write := func(text string) func(string) error {
		return func(fresh string) error { return os.WriteFile(filepath.Join(fresh, "a"), []byte(text), 0o644) }
	}
	if err := Replace(folder, write("one")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk full")
	if err := Replace(folder, func(string) error { return broken }); err != broken {
		t.Errorf("replace = %v, want %v", err, broken)
	}
	if got := sample.Files(t, folder)["a"]; got != "one" {
		t.Errorf("after a failed write the folder holds %q", got)
	}
	// a kill between the two renames
	if err := os.Rename(folder, folder+OldSuffix); err != nil {
		t.Fatal(err)
	}
	if got := sample.Files(t, Whole(folder))["a"]; got != "one" {
		t.Errorf("after a kill there is %q", got)
	}
	if err := Replace(folder, write("two")); err != nil {
		t.Fatal(err)
	}
	if got := sample.Files(t, Whole(folder))["a"]; got != "two" {
		t.Errorf("after the next write there is %q", got)
	}
}

// A run that is moved while a checkpoint is written to it is not begun again at its old path.
func TestReplaceMakesNoFolderThatWasMoved(t *testing.T) {
	for _, name := range []string{"last", "best"} {
		home := t.TempDir()
		run, moved := filepath.Join(home, "run"), filepath.Join(home, "moved")
		write := func(fresh string) error { return os.WriteFile(filepath.Join(fresh, "a"), []byte("one"), 0o644) }
		if err := cmp.Or(os.Mkdir(run, 0o755), Replace(filepath.Join(run, name), write)); err != nil {
			t.Fatal(err)
		}
		err := Replace(filepath.Join(run, name), func(fresh string) error {
			return cmp.Or(os.Rename(run, moved), os.MkdirAll(filepath.Join(fresh, "encoder"), 0o755), write(fresh))
		})
		if !errors.Is(err, ErrMoved) || Exists(run) {
			t.Errorf("%s: error %v; the folder is at its old path: %v", name, err, Exists(run))
		}
		if got := sample.Files(t, filepath.Join(moved, name))["a"]; got != "one" {
			t.Errorf("%s: what was moved holds %q", name, got)
		}
	}
}

func TestWriteFileLeavesNoPartWhereItFails(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	if err := os.Mkdir(path, 0o755); err != nil { // a file cannot replace it
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("text")); err == nil {
		t.Error("a folder is replaced by a file")
	}
	if Exists(path + NewSuffix) {
		t.Error("the file under its temporary name is left")
	}
}

func TestWriteFileWritesThroughNoLink(t *testing.T) {
	folder := t.TempDir()
	path, victim := filepath.Join(folder, ExperimentFile), filepath.Join(folder, "victim")
	sample.Write(t, victim, "private")
	if err := os.Symlink(victim, path+NewSuffix); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("text")); err != nil {
		t.Fatal(err)
	}
	files := sample.Files(t, folder)
	if len(files) != 2 || files["victim"] != "private" || files[ExperimentFile] != "text" {
		t.Errorf("the folder holds %q", files)
	}
}
