package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/merge"
)

// runsOfOneBase trains two runs from one base model, in the working directory: a and b.
func runsOfOneBase(t *testing.T) {
	t.Helper()
	rateTest(t)
	train := func(args ...string) {
		t.Helper()
		args = append([]string{"train", "experiment.yaml", "--set", "training.max_steps=4"}, args...)
		status, _, log := call("", args...)
		if status != 0 {
			t.Fatal(log)
		}
	}
	train("--out", "base")
	for folder, task := range map[string]string{"a": "team", "b": "other"} {
		train("--out", folder, "--set", "model.base_model=base/best/encoder", "--set", "model.encoder=null",
			"--set", "tokenizer.train=null", "--set", "tasks.team.name="+task)
	}
}

func TestMergeOfTheCommandLine(t *testing.T) {
	runsOfOneBase(t)
	status, out, log := call("", "merge", "a", "b", "--method", "ties", "--density", "0.5", "--weight", "1,2",
		"-o", "ab")
	for _, want := range []string{"dev:\n", "before", "\nteam   team", "\nother  other",
		"merged by ties, scale 1, density 0.5; the model is in ab\n"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Fatalf("merge: %d, no %q in\n%s%s", status, want, out, log)
		}
	}
	status, predicted, log := call("please\n", "predict", "ab")
	if status != 0 || !strings.Contains(predicted, `"other":{"other":`) {
		t.Errorf("predict: %d, %s%s", status, predicted, log)
	}

	// heads trained again, in place of the run
	status, out, log = call("", "merge", "a", "b", "--refit", "--set", "training.max_steps=20", "--json", "-o", "ab",
		"--force")
	var line struct {
		Method string
		Dev    []merge.Figure
	}
	if err := json.Unmarshal([]byte(out), &line); status != 0 || err != nil {
		t.Fatalf("merge --json: %d, %v, %s%s", status, err, out, log)
	}
	if len(line.Dev) != 2 || line.Method != "mean" || line.Dev[1].Task != "other" || line.Dev[1].Refitted == nil {
		t.Errorf("line %+v", line)
	}
	if status, out, log := call("", "eval", "ab"); status != 0 {
		t.Errorf("eval: %d, %s%s", status, out, log)
	}
}

func TestMistakesOfMerge(t *testing.T) {
	t.Chdir(t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"a"}, exitUsage, "an argument is missing"},
		{[]string{"a", "b"}, exitUsage, "--out: no run folder"},
		{[]string{"a", "b", "-o", "c"}, exitMistake, "a: no such folder\nb: no such folder"},
		{[]string{"a", "b", "-o", "c", "--set", "training.max_steps=2"}, exitUsage, "--set: its options are those"},
		{[]string{"a", "b", "-o", "c", "--refit", "--set", "seed=2"}, exitUsage, "want a key of the section training"},
		{[]string{"a", "b", "-o", "c", "--rename", "3:x=y"}, exitUsage, `no run "3"; want a number from 1 to 2`},
		{[]string{"a", "b", "-o", "c", "--rename", "x=y"}, exitUsage, "want RUN:TASK=NAME"},
		{[]string{"a", "b", "-o", "c", "--method", "slerp"}, exitUsage, `no method "slerp"`},
		{[]string{"a", "b", "-o", "c", "--density", "0.5"}, exitUsage, "--density: method mean has none"},
		{[]string{"a", "b", "-o", "c", "--seed", "7"}, exitUsage, "--seed: method mean drops no numbers at random"},
		{[]string{"a", "b", "-o", "c", "--weight", "1"}, exitUsage, "--weight: 1 number for 2 runs"},
		{[]string{"a", "b", "-o", "c", "--weight", "1,-1"}, exitUsage,
			"--weight: want numbers from 0 to 1e+100, have -1"},
		{[]string{"a", "b", "-o", "c", "--scale", "-1"}, exitUsage, "--scale: want a number above 0, have -1"},
		{[]string{"a", "b", "-o", "c", "--scale", "0"}, exitUsage, "--scale: want a number above 0, have 0"},
		{[]string{"a", "b", "-o", "c", "--density=0"}, exitUsage,
			"--density: want a number above 0, at most 1, have 0"},
		{[]string{"a", "b", "-o", file}, exitMistake, file + " is a file; name a folder by --out"},
		{[]string{"a", "b", "-o", file + "/c"}, exitMistake, file + "/c is a file; name a folder by --out"},
		{[]string{"a", "b", "-o", "."}, exitMistake, "a: no such folder"},
	} {
		status, out, log := call("", append([]string{"merge"}, c.args...)...)
		if status != c.status || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("merge %q: status %d, %s%s, want %d, %s", c.args, status, out, log, c.status, c.want)
		}
	}
}

// Mistakes that are found before the merged run is written.
func TestMistakesOfMergeLeaveNoRun(t *testing.T) {
	runsOfOneBase(t)
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--refit --set training.num_epochs=no", exitMistake, "--set training.num_epochs=no: training: num_epochs: "},
		{"--refit --set training.num_epoch=2", exitMistake, `did you mean "num_epochs"?`},
		{"--refit --set training.output_dir=x", exitUsage, "the run folder is that of --out, ab; leave it out"},
		{"--base base", exitMistake, "--base: base is a run or a checkpoint of one; want the folder of the base model"},
		{"--base base/best", exitMistake, "as RUN/best/encoder"},
		{"--rename 1:team=x --rename 1:team=y", exitMistake, `--rename: two names for task "team" of a, "x" and "y"`},
	} {
		status, out, log := call("", append([]string{"merge", "a", "b", "-o", "ab"}, strings.Fields(c.args)...)...)
		if status != c.status || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("merge %s: status %d, %s%s, want %d, %s", c.args, status, out, log, c.status, c.want)
		}
		if _, err := os.Stat("ab"); err == nil {
			t.Fatalf("merge %s leaves a run", c.args)
		}
	}

	// without data a merge has no metrics, and no flag for other data
	if err := os.Rename("mails.csv", "elsewhere.csv"); err != nil {
		t.Fatal(err)
	}
	status, _, log := call("", "merge", "a", "b", "-o", "ab")
	if status != 0 || !strings.Contains(log, `task "team" is not evaluated on dev`) || strings.Contains(log, "--data") {
		t.Errorf("merge without data: %d, %s", status, log)
	}
}
