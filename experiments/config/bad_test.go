package config

import (
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// Each file of testdata/bad has one mistake, each reported by a different place in the code. The .want file beside it
// has the message.
func TestBadFiles(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	t.Chdir("testdata/bad")
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v; want at least 30", len(files), err)
	}
	for _, file := range files {
		_, err := Read(t.Context(), file, nil)
		if err == nil {
			t.Errorf("%s is read without an error", file)
			continue
		}
		sample.CheckMessage(t, err, strings.TrimSuffix(file, ".yaml")+".want")
	}
}
