//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package run

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// No process writes to the pipe: a reader that opened it would wait for ever.
func TestMetricsThatAreANamedPipeAreAnError(t *testing.T) {
	folder := interruptedRun(t, 6)
	path := filepath.Join(folder, runfolder.MetricsFile)
	r := resumedRun(t, folder)
	removeAll(t, path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "metrics.jsonl: a named pipe; want a regular file"
	if _, err := resume.Find(t.Context(), folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("FindUnfinished = %v, want %s", err, want)
	}
	if _, err := r.Train(context.Background(), folder, ignore); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Train = %v, want %s", err, want)
	}
}
