//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package run

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// A pipe that nobody writes to would block the reader for ever: a mistake here shows as the test's timeout.
func TestAPipeInARunFolderIsNotRead(t *testing.T) {
	folder := t.TempDir()
	metrics, lock := filepath.Join(folder, runfolder.MetricsFile), filepath.Join(folder, runfolder.LockFile)
	for _, path := range []string{metrics, lock} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"warning: " + metrics + ": a named pipe; want a regular file"}
	if _, got := report.CheckFinished(folder); !slices.Equal(plugin.Lines(got), want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
	if err := runfolder.CheckUnlocked(folder); err == nil || err.Error() != lock+": a named pipe; want a regular file" {
		t.Errorf("CheckUnlocked = %v", err)
	}
}
