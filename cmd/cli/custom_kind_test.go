package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A module outside the repository adds a kind of outputs, with its task and head: testdata/grading.
func TestAKindOfOutputsOfAnotherModuleTrainsAndPredicts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeModule(t, dir, root, "example.com/grading")
	module := filepath.Join("testdata", "grading")
	files := []string{"main.go", "experiment.yaml", "grade/kind.go", "grade/head.go", "grade/task.go", "grade/grade_test.go"}
	for _, name := range files {
		writeFile(t, dir, name, readFile(t, filepath.Join(module, name)))
	}
	for _, name := range []string{"train.jsonl.gz", "dev.jsonl"} {
		writeFile(t, dir, name, readFile(t, filepath.Join(root, "experiments", "claims", name)))
	}

	goCommand(t, dir, "test", "./grade")
	binary := filepath.Join(dir, "grading")
	goCommand(t, dir, "build", "-o", binary, ".")
	command := func(stdin string, args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Dir, c.Stdin = dir, strings.NewReader(stdin)
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return string(out)
	}

	// it trains, and its run folder loads again
	command("", "train")
	metrics := func(folder, split string) map[string]any {
		t.Helper()
		var judged struct {
			Tasks map[string]struct{ Heads map[string]map[string]any }
		}
		if err := json.Unmarshal([]byte(command("", "eval", folder, "--split", split, "--json")), &judged); err != nil {
			t.Fatal(err)
		}
		return judged.Tasks["urgency"].Heads["urgency"]
	}
	figures := metrics("runs/notes", "test")
	if qwk, _ := figures["qwk"].(float64); !(qwk > 0.5) {
		t.Errorf("metrics %v: little was learned", figures)
	}
	if mae, _ := figures["mae"].(float64); !(mae < 0.5) {
		t.Errorf("metrics %v: little was learned", figures)
	}

	// it predicts
	var answer struct {
		Tasks struct {
			Urgency struct {
				Urgency struct {
					Grade       string
					Rank        *int
					Probability float64
				}
			}
		}
	}
	line := command("Please pay the dental bill.\n", "predict", "runs/notes")
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		t.Fatal(err)
	}
	got, grades := answer.Tasks.Urgency.Urgency, []string{"routine", "soon", "urgent"}
	if got.Rank == nil || got.Probability <= 0 || !slices.Contains(grades, got.Grade) || grades[*got.Rank] != got.Grade {
		t.Errorf("predicted %s", line)
	}
}
