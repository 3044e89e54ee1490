// Package shared has what tests of several packages share: it finds the corpora and models beside the repository, skips
// tests that take long, has the temporary files of tests that train in memory, and compares runs.
package shared

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Dir returns the folder `shared` beside the repository's root. Without one the test is skipped; under CI it fails.
func Dir(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	if _, err := os.Stat(filepath.Join(dir, "models")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no corpora and models in %s", dir)
		}
		t.Skipf("no corpora and models in %s: skipped", dir)
	}
	return dir
}

// Long reports whether tests may take minutes: whether JENGA_LONG=1 is set.
func Long() bool { return os.Getenv("JENGA_LONG") == "1" }

// SkipUnlessLong skips a test that takes minutes, unless [Long].
func SkipUnlessLong(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("takes long: JENGA_LONG=1 runs it")
	}
}

// inMemory is Linux's folder of files in memory, and roomInMemory the bytes that the tests of some packages at once may
// need of it.
const (
	inMemory     = "/dev/shm"
	roomInMemory = 4 << 30
)

var packageDir string

// PackageDir returns the folder of what tests of a package have in common; [RunTests] removes it at their end.
func PackageDir() string { return packageDir }

// RunTests runs the tests of a package and returns the exit status. Their temporary files are in memory where there is
// room and TMPDIR names no other folder: a run syncs all that it writes, for which a disk may take longer than tests
// train. ends are called before the folder is removed: a program that still runs would make it again.
func RunTests(m *testing.M, ends ...func()) int {
	if os.Getenv("TMPDIR") == "" && hasMemory() {
		removeForgotten(filepath.Join(inMemory, "jenga-tests-*"))
		os.Setenv("TMPDIR", inMemory)
	}
	var err error
	if packageDir, err = os.MkdirTemp("", "jenga-tests-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(packageDir)
	os.Setenv("TMPDIR", packageDir)
	status := m.Run()
	for _, end := range ends {
		end()
	}
	return status
}

// hasMemory reports whether temporary files of tests, among them programs, can be in memory.
func hasMemory() bool {
	if free, ok := files.Free(inMemory); !ok || free < roomInMemory {
		return false
	}
	script, err := os.CreateTemp(inMemory, "jenga-tests-")
	if err != nil {
		return false
	}
	defer os.Remove(script.Name())
	_, err = script.WriteString("#!/bin/sh\n")
	err = errors.Join(err, script.Chmod(0o700), script.Close())
	return err == nil && exec.Command(script.Name()).Run() == nil // it fails where a mount has noexec
}

// removeForgotten removes the folders that tests left a day ago or more: those that were killed.
func removeForgotten(pattern string) {
	folders, _ := filepath.Glob(pattern)
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(folder)
		}
	}
}

// timed are the fields of metrics.jsonl that differ from run to run of the same training.
var timed = regexp.MustCompile(`"(tokens_per_second|seconds)":[0-9.e+-]+|"folder":"[^"]*"|,"exchange":\{[^}]*\}`)

// WithoutTimes returns the text of a metrics.jsonl without what differs from run to run of the same training.
func WithoutTimes(text string) string { return timed.ReplaceAllString(text, "") }
