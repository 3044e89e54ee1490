package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestTheRunFolderListsTheRecordsOfEachSplit(t *testing.T) {
	file := sample.Small(t, "")
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, file, folder, "training.num_epochs=1", "tasks.team.data.limit=10")
	text, err := os.ReadFile(filepath.Join(folder, runfolder.SplitsFile))
	if err != nil {
		t.Fatal(err)
	}

	sizes, lines := map[string]int{}, []int{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var at runfolder.SplitLine
		if err := json.Unmarshal([]byte(line), &at); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(at.Tasks, []string{"team", "things"}) || at.Entries != nil {
			t.Errorf("line %s, want both tasks and no entries", line)
		}
		if !runfolder.Exists(filepath.Join(folder, at.File)) {
			t.Errorf("there is no file %s", at.File)
		}
		sizes[at.Split] = len(at.Lines)
		lines = append(lines, at.Lines...)
	}
	if sizes["train"] != 10 || sizes["dev"] != 8 || sizes["test"] != 8 || sizes["unused"] != 14 {
		t.Errorf("sizes %v, want 10 in train, 8 in dev, 8 in test and 14 unused", sizes)
	}
	slices.Sort(lines)
	for i, line := range lines {
		if line != i+1 {
			t.Fatalf("lines %v, want 1 to 40", lines)
		}
	}
}

func TestARunOfWholeFilesListsNoRecords(t *testing.T) {
	sample.Tasks(t, "  - {name: mood, type: classification, data: {train: a.csv, dev: a.csv}}\n",
		map[string]string{"a.csv": "text,label\nso good,good\nso bad,bad\n"})
	trainSmall(t, "exp.yaml", "run", "training.num_epochs=1")
	if runfolder.Exists(filepath.Join("run", runfolder.SplitsFile)) {
		t.Error("there is a list of records")
	}
}

// The task, the file and what it has are in the error: the head alone does not tell which of several tasks it is.
func TestTheErrorOfASingleLabelNamesTaskAndFile(t *testing.T) {
	const task = "  - {name: mood, type: classification, data: {train: a.csv, dev: a.csv}, heads: [{type: %s}]}\n"
	for _, head := range []string{"linear", "mlp"} {
		want := fmt.Sprintf(`exp.yaml:5:82: task "mood": head %q: want at least 2 labels, have ["good"] in 1 labelled `+
			"training example of a.csv", head)
		_, err := prepare(t, fmt.Sprintf(task, head), map[string]string{"a.csv": "text,label\nso good,good\nso bad,\n"})
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
