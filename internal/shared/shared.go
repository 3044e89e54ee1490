// Package shared has what tests of several packages share: it finds the corpora and models beside the repository, skips
// tests that take long, and compares runs.
package shared

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
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

// timed are the fields of metrics.jsonl that differ from run to run of the same training.
var timed = regexp.MustCompile(`"(tokens_per_second|seconds)":[0-9.e+-]+|"folder":"[^"]*"|,"exchange":\{[^}]*\}`)

// WithoutTimes returns the text of a metrics.jsonl without what differs from run to run of the same training.
func WithoutTimes(text string) string { return timed.ReplaceAllString(text, "") }
