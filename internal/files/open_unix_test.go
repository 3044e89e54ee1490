//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
