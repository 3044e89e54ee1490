package run

import (
	"maps"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestATrainingThatKeepsRunsReplacesNoFilesOfAUser(t *testing.T) {
	r, err := ready(mustRead(t, sample.Small(t, ""), "training.num_epochs=1"), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	r.Keep = true
	files := map[string]string{"best/a": "", "last/a": ""}
	folder := sample.Folder(t, files)
	if _, err := r.Train(t.Context(), folder, ignore); err == nil ||
		!strings.Contains(err.Error(), " holds files, but no run, as best:") {
		t.Errorf("Train = %v", err)
	}
	if now := sample.Files(t, folder); !maps.Equal(now, files) {
		t.Errorf("the folder holds %d files", len(now))
	}
}
