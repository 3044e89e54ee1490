//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe that nobody writes to would block the reader for ever: a mistake here shows as the test's timeout.
func TestOpenRefusesANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ": a named pipe; want a regular file"
	if _, err := Open(path); err == nil || err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
	if _, err := ReadFile(path, 9); err == nil || err.Error() != want {
		t.Errorf("ReadFile: %v, want %s", err, want)
	}
}

func TestReplaceHeedsTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "a")
	if err := Replace(path, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("the file is %v, %v; want mode 0600", info.Mode(), err)
	}
}

// A file that someone else has put under the name of a lock or log, and that has another name, is not written.
func TestOpenOwnRefusesAHardLink(t *testing.T) {
	folder := t.TempDir()
	own, lock := filepath.Join(folder, "own"), filepath.Join(folder, "lock")
	if err := os.WriteFile(own, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(own, lock); err != nil {
		t.Skip(err)
	}
	want := lock + ": the file has another name"
	if f, err := OpenOwn(lock, true); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("OpenOwn: %v, %v", f, err)
	}
	os.Remove(own)
	f, err := OpenOwn(lock, true)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
