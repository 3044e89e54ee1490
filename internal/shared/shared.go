// Package shared finds the corpora and models that lie beside the repository, for tests.
package shared

import (
	"os"
	"path/filepath"
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
