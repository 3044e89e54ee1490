package run

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// entries lists the names in a folder.
func entries(t *testing.T, folder string) []string {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

func TestAFrozenRunIsTheSameWithAnyCache(t *testing.T) {
	path := sample.Small(t, "")
	elsewhere := t.TempDir()
	var want map[string]string
	for _, sets := range [][]string{
		nil,
		{"training.cache_memory=0"},
		{"training.cache_memory=0", "training.cache_file=true"},
		{"training.cache_memory=0", "training.cache_file=" + elsewhere},
		{"training.cache_memory=0", "training.cache_file=false"},
	} {
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, path, folder, append(sets, "model.freeze=all", "training.num_epochs=3")...)
		if got := entries(t, folder); !slices.Equal(got,
			[]string{"best", "experiment.yaml", "last", "metrics.jsonl", "splits.jsonl", "tasks"}) {
			t.Errorf("with %q the run folder holds %q", sets, got)
		}
		got := sample.Files(t, filepath.Join(folder, "last"))
		if want == nil {
			want = got
		}
		if got["model.safetensors"] == "" || got["model.safetensors"] != want["model.safetensors"] {
			t.Errorf("with %q the model has other bytes", sets)
		}
	}
	if left := entries(t, elsewhere); len(left) > 0 {
		t.Errorf("the folder of the file holds %q", left)
	}
}

func TestAFileOfStatesIsRemovedWhenClosed(t *testing.T) {
	folder := t.TempDir()
	f, err := openStates(folder)
	if err != nil {
		t.Fatal(err)
	}
	if left := entries(t, folder); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("the folder holds %q while the file is open, which a kill would not remove", left)
	}
	if _, err := f.WriteAt([]byte("states"), 3); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 6)
	if _, err := f.ReadAt(got, 3); err != nil || string(got) != "states" {
		t.Errorf("ReadAt = %q, %v", got, err)
	}
	_, err = f.ReadAt(got, 5)
	if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(folder, "jenga-states-")) ||
		!strings.HasSuffix(err.Error(), ": it ends at byte 9 of 11") {
		t.Errorf("a read beyond the end: error %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left := entries(t, folder); len(left) > 0 {
		t.Errorf("the folder holds %q after Close", left)
	}
	if _, err := openStates(filepath.Join(folder, "none")); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("openStates in no folder = %v, want an error that names it", err)
	}
}

func TestFilesOfAKilledRunAreRemoved(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run [1]")
	trainSmall(t, path, folder, "training.num_epochs=1")
	if err := os.WriteFile(filepath.Join(folder, "jenga-states-123"), []byte("states"), 0o644); err != nil {
		t.Fatal(err)
	}
	trainSmall(t, path, folder, "training.num_epochs=1")
	if got := entries(t, folder); slices.Contains(got, "jenga-states-123") {
		t.Errorf("the run folder holds %q", got)
	}
}
