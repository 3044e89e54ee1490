package files

import (
	"errors"
	"io"
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

func TestReplaceWritesThroughNoLink(t *testing.T) {
	folder := t.TempDir()
	path, victim := filepath.Join(folder, "a"), filepath.Join(folder, "victim")
	write := func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }
	for _, left := range []func() error{
		func() error { return os.Symlink(victim, path+NewSuffix) },
		func() error { return os.Link(victim, path+NewSuffix) },
		func() error { return os.WriteFile(path+NewSuffix, []byte("longer than the text"), 0o644) }, // by a kill
		func() error { return os.Symlink(victim, path) },
	} {
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(victim, []byte("private"), 0o600), left()); err != nil {
			t.Fatal(err)
		}
		if err := Replace(path, write); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{path: "text", victim: "private"} {
			info, err := os.Lstat(name)
			if got, failed := os.ReadFile(name); string(got) != want || errors.Join(err, failed) != nil ||
				!info.Mode().IsRegular() {
				t.Errorf("%s has %q, %v, %v; want a regular file with %q", name, got, err, failed, want)
			}
		}
		if _, err := os.Lstat(path + NewSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file under its temporary name is left: %v", err)
		}
	}

	// what fails leaves the file as it was, and no other
	broken := errors.New("disk full")
	if err := Replace(path, func(io.Writer) error { return broken }); err != broken {
		t.Errorf("Replace = %v, want %v", err, broken)
	}
	if names, err := filepath.Glob(path + "*"); len(names) != 1 || err != nil {
		t.Errorf("after an error there are %q, %v", names, err)
	}
}

// The last of two writers at once to end has an error, and its complete file is at path.
func TestReplaceByTwoAtOnceLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	begun, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	first := Replace(path, func(w io.Writer) error {
		go func() {
			ended <- Replace(path, func(w io.Writer) error {
				close(begun)
				<-goOn
				_, err := io.WriteString(w, "second")
				return err
			})
		}()
		<-begun
		_, err := io.WriteString(w, "first")
		return err
	})
	close(goOn)
	if second := <-ended; first != nil || !errors.Is(second, fs.ErrNotExist) {
		t.Errorf("the first writer has the error %v, the second %v", first, second)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "second" {
		t.Errorf("the file is %q, %v", got, err)
	}
}
