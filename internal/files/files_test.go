package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestCopy(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if err := Copy(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: error %v", err)
	}
	for _, text := range []string{"longer", "text"} {
		if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Copy(from, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if err := Copy(from, filepath.Join(t.TempDir(), "none", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: error %v", err)
	}
}
