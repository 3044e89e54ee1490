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

func TestReadFile(t *testing.T) {
	folder := t.TempDir()
	path, large := filepath.Join(folder, "f"), filepath.Join(folder, "large")
	for _, name := range []string{path, large} {
		if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, path string
		limit      int64
		want, err  string
	}{
		{"shorter than the limit", path, 1 << 40, "12345", ""},
		{"as long as the limit", path, 5, "12345", ""},
		{"longer than the limit", path, 4, "", path + ": more than 4 bytes, which is the most that is read"},
		{"a size that memory does not have", large, 9, "",
			large + ": more than 9 bytes, which is the most that is read"},
		{"a folder", folder, 9, "", folder + ": a folder; want a regular file"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got, err := ReadFile(c.path, c.limit)
			if string(got) != c.want || (c.err == "") != (err == nil) || err != nil && err.Error() != c.err {
				t.Errorf("ReadFile: %q, %v; want %q, %q", got, err, c.want, c.err)
			}
		})
	}
	if _, err := ReadFile(filepath.Join(folder, "none"), 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v, want fs.ErrNotExist", err)
	}
}

// Linux reports the size 0 for the files of /proc, whatever they hold.
func TestReadFileCountsWhatItReads(t *testing.T) {
	const path = "/proc/self/status"
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Skipf("no %s of size 0", path)
	}
	if got, err := ReadFile(path, 1<<20); err != nil || len(got) < 100 {
		t.Errorf("ReadFile: %d bytes, %v; want a hundred at least", len(got), err)
	}
	const want = path + ": more than 99 bytes, which is the most that is read"
	if _, err := ReadFile(path, 99); err == nil || err.Error() != want {
		t.Errorf("ReadFile: %v, want %s", err, want)
	}
}

func TestOpenRefusesADevice(t *testing.T) {
	info, err := os.Stat(os.DevNull)
	if err != nil || info.Mode()&fs.ModeDevice == 0 {
		t.Skip("no device to open")
	}
	want := os.DevNull + ": a device; want a regular file"
	if _, err := Open(os.DevNull); err == nil || err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
}
