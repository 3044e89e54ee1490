package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A module outside the repository adds an output kind with its task and head: testdata/grading.
func TestAnOutputKindOfAnotherModuleTrainsAndPredicts(t *testing.T) {
	grading := buildGrading(t)
	if list := grading.run("", "parts", "section", "data"); !strings.Contains(list, "column of a grade") {
		t.Errorf("the kind's field is not among the keys of data:\n%s", list)
	}
	grading.run("", "train")

	// the run folder can be opened and evaluated
	var evaluated struct {
		Tasks map[string]struct{ Heads map[string]map[string]any }
	}
	out := grading.run("", "eval", "runs/notes", "--split", "test", "--json")
	if err := json.Unmarshal([]byte(out), &evaluated); err != nil {
		t.Fatal(err)
	}
	metrics := evaluated.Tasks["urgency"].Heads["urgency"]
	qwk, _ := metrics["qwk"].(float64)
	mae, ok := metrics["mae"].(float64)
	if !ok || !(qwk > 0.5 && mae < 0.5) {
		t.Errorf("metrics %v, want qwk > 0.5 and mae < 0.5", metrics)
	}

	// it predicts
	var prediction struct {
		Tasks map[string]map[string]struct {
			Grade       string
			Rank        *int
			Probability float64
		}
	}
	line := grading.run("Please pay the dental bill.\n", "predict", "runs/notes")
	if err := json.Unmarshal([]byte(line), &prediction); err != nil {
		t.Fatal(err)
	}
	got := prediction.Tasks["urgency"]["urgency"]
	rank := slices.Index([]string{"routine", "soon", "urgent"}, got.Grade)
	if got.Rank == nil || *got.Rank != rank || got.Probability <= 0 {
		t.Errorf("predicted %s", line)
	}
	table := grading.run("Please pay the dental bill.\n", "predict", "runs/notes", "--format", "csv")
	if !strings.HasSuffix(table, "\nPlease pay the dental bill.,"+got.Grade+"\n") {
		t.Errorf("as csv: %s", table)
	}
}

// program is the binary of a module outside the repository, in the module's folder.
type program struct {
	t      *testing.T
	folder string
}

// buildGrading tests and builds testdata/grading as a module of its own, beside the shipped notes.
func buildGrading(t *testing.T) program {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeModule(t, folder, root, "example.com/grading")
	for _, name := range []string{
		"main.go", "experiment.yaml", "grade/kind.go", "grade/head.go", "grade/task.go", "grade/grade_test.go",
	} {
		writeFile(t, folder, name, readFile(t, filepath.Join("testdata", "grading", name)))
	}
	for _, name := range []string{"train.jsonl.gz", "dev.jsonl"} {
		writeFile(t, folder, name, readFile(t, filepath.Join(root, "experiments", "claims", name)))
	}
	goCommand(t, folder, "test", "./grade")
	goCommand(t, folder, "build", "-o", "grading", ".")
	return program{t, folder}
}

// run returns what a command writes to stdout.
func (p program) run(stdin string, args ...string) string {
	p.t.Helper()
	c := exec.Command(filepath.Join(p.folder, "grading"), args...)
	c.Dir, c.Stdin = p.folder, strings.NewReader(stdin)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
