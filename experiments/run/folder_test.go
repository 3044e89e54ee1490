package run

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
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

// What errors of a training call an argument, docs/go.md explains to those who call the package.
func TestTheArgumentsThatErrorsNameAreInThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ready(mustRead(t, sample.Small(t, ""), "training.num_epochs=1"), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	r.Keep = true
	folder := sample.Folder(t, map[string]string{runfolder.ExperimentFile: "",
		runfolder.MetricsFile: "", filepath.Join(runfolder.LastDir, runfolder.SnapshotFile): ""})
	_, err = r.Train(t.Context(), folder, ignore)
	var refused plugin.Mistakes
	refused.Append(err)
	refused.Append(&plugin.Mistake{Place: plugin.Place{File: "a=1", Argument: "set"}, Err: err})
	refused.Append(plugin.Argument("allow-changes"))
	named := regexp.MustCompile(`argument [a-z-]+`).FindAllString(refused.Err().Error(), -1)
	slices.Sort(named)
	if named = slices.Compact(named); len(named) != 5 {
		t.Errorf("%v names %q, want 5", refused.Err(), named)
	}
	for _, argument := range named {
		if !strings.Contains(string(page), "`"+argument) {
			t.Errorf("docs/go.md does not explain %q", argument)
		}
	}
}
