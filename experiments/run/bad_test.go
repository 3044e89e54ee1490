package run

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// Each folder of testdata/bad_data has a valid experiment, data with mistakes, and the expected message in its file
// want.
func TestBadData(t *testing.T) {
	folders, err := filepath.Glob("testdata/bad_data/*")
	if err != nil || len(folders) < 15 {
		t.Fatalf("%d folders, %v; want at least 15", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Chdir(folder)
			e, err := config.Read(t.Context(), "experiment.yaml", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = ready(e, config.Train, config.Dev, config.Test); err == nil {
				t.Fatal("ready returned no error")
			}
			sample.CheckMessage(t, err, "want")
		})
	}
}
