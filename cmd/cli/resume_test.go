package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// interruptedAt trains ./experiment.yaml until an event has been written a number of times.
func interruptedAt(t *testing.T, event string, n int, f trainFlags) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.json = true
	c := &commands{out: &interrupter{event: event, left: n, cancel: cancel}, log: new(strings.Builder)}
	if err := c.train(ctx, f, defaultFile); err == nil || !strings.HasPrefix(err.Error(), "interrupted ") {
		t.Fatalf("train = %v", err)
	}
}

func TestResumeFindsTheRun(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	short := trainFlags{set: []string{"training.num_epochs=3"}}
	last := filepath.Join("runs", "mails", "last")
	for _, test := range []struct {
		args []string
		dir  string // to which the command changes
		want string
	}{
		{[]string{"--set", "training.num_epochs=3"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"experiment.yaml", "--set", "training.num_epochs=3"}, ".", "training goes on after step 5 of 12, "},
		{[]string{"runs/mails"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"runs/mails/"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{last}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"--out", "runs/mails"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{nil, "runs/mails", "training goes on after step 5 of 12, from last\n"},
	} {
		if err := os.RemoveAll("runs"); err != nil {
			t.Fatal(err)
		}
		interruptedAt(t, "step", 5, short)
		t.Chdir(filepath.Join(home, test.dir))
		status, out, log := call("", append([]string{"train", "--resume"}, test.args...)...)
		if status != 0 || !strings.HasPrefix(log, test.want) || !strings.Contains(out, "trained in ") {
			t.Errorf("train --resume %v in %s: status %d\n%s%s", test.args, test.dir, status, out, log)
		}
		t.Chdir(home)
	}

	// a run that is finished
	status, out, log := call("", "train", "--resume", "runs/mails")
	if status != 0 || out != "" || log != "runs/mails: its training is finished, after step 12 of 12\n" {
		t.Errorf("a finished run: status %d, %s%s", status, out, log)
	}
	_, _, log = call("", "train", "--resume", "runs/mails", "--set", "training.num_epochs=9")
	if !strings.Contains(log, "model.base_model: runs/mails trains it on with other options") {
		t.Errorf("a finished run with other options: %s", log)
	}
	done := regexp.MustCompile(`^\{"event":"done",.*\}\n$`)
	if status, out, _ := call("", "train", "--resume", "runs/mails", "--json"); status != 0 || !done.MatchString(out) {
		t.Errorf("a finished run as JSON: status %d, %s", status, out)
	}
}

func TestResumeWithoutACheckpointStartsFromTheBeginning(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	const begins = "runs/mails: no checkpoint to resume from: training starts from the beginning\n"
	first := func() { // what a kill leaves before the first checkpoint
		interruptedAt(t, "step", 2, trainFlags{force: true, set: []string{"training.num_epochs=2"}})
		if err := os.RemoveAll(filepath.Join("runs", "mails", "last")); err != nil {
			t.Fatal(err)
		}
	}
	first()
	for _, args := range []string{"runs/mails", "experiment.yaml --set training.num_epochs=2"} {
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(args)...)...)
		if status != 0 || !strings.HasPrefix(log, begins) || !strings.Contains(log, "step 8 of 8") {
			t.Errorf("train --resume %s: status %d, %s", args, status, log)
		}
		first() // beside an earlier run
	}

	// no run at all
	if status, _, log := call("", "train", "--resume", "--set", "training.num_epochs=2", "--out", "runs/new",
		"experiment.yaml"); status != 0 || !strings.HasPrefix(log, "runs/new: no checkpoint to resume from") {
		t.Errorf("without a run: status %d, %s", status, log)
	}
	status, _, log := call("", "train", "--resume", "--out", "runs/none")
	if status != exitMistake || log != "runs/none: no such folder; want that of a run, or an experiment file\n" {
		t.Errorf("without a run or a file: status %d, %s", status, log)
	}
	writeFile(t, "other", "notes.txt", "")
	status, _, log = call("", "train", "--resume", "other")
	if status != exitMistake || !strings.HasPrefix(log, "other: no run to resume: the folder has no experiment.yaml") {
		t.Errorf("in another folder: status %d, %s", status, log)
	}
	writeFile(t, "papers", "thesis.txt", "")
	if status, _, log := call("", "train", "--resume", "experiment.yaml", "--out", "papers"); status != exitMistake ||
		!strings.HasPrefix(log, "papers holds files, but no run") {
		t.Errorf("in a folder of other files: status %d, %s", status, log)
	}
}

func TestResumeRefusesChangesAndWrongFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	interruptedAt(t, "step", 5, trainFlags{})
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"--set training.warmup_steps=7", exitMistake, "experiment: training.warmup_steps: was 0, is 7\nundo the " +
			"change, or go on all the same by --allow-changes experiment\n"},
		{"--force", exitUsage, "--resume goes on with a run, --force replaces it"},
		{"--allow-changes weather", exitUsage, "--allow-changes weather: want experiment, data, jenga, kernels"},
		{"--allow-changes data,,experiment", exitUsage, "--allow-changes \"data,,experiment\": an empty name; want " +
			"some of experiment, data, jenga, kernels, joined by commas\n"},
		{"--allow-changes=", exitUsage, "--allow-changes \"\": an empty name; want some of experiment, data"},
		{"runs/mails --out runs/other", exitUsage, "--resume of the run runs/mails cannot write to --out runs/other"},
	} {
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(log, test.want) {
			t.Errorf("train --resume %s: status %d, %s", test.args, status, log)
		}
	}

	// the steps are those of the changed plan
	status, _, log := call("", "train", "--resume", "--set", "training.max_steps=7", "--allow-changes", "experiment")
	if status != 0 || !strings.HasPrefix(log, "training goes on after step 5 of 7, from ") {
		t.Errorf("with max_steps=7: status %d, %s", status, log)
	}
	if status, _, log := call("", "train", "--allow-changes", "data"); status != exitUsage ||
		!strings.Contains(log, "no effect without --resume") {
		t.Errorf("--allow-changes alone: status %d, %s", status, log)
	}
}
