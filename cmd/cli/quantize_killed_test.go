package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

func TestWhatAKilledQuantizationHasLeftIsReplaced(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev")
	const whole, others = " holds what a command has left of a run", " holds files, but no run, as "
	for _, left := range []struct {
		names string
		want  string // the error without --force
		stays bool   // with --force too
	}{
		{"", "", false},
		{"best.new", "", false},
		{"best", whole, false},
		{"best metrics.jsonl.new", whole, false},
		{"best metrics.jsonl experiment.yaml.new", whole, false},
		{"best.new notes.txt", others, true},
	} {
		if err := os.RemoveAll("killed"); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(left.names) {
			from := filepath.Join("int8", strings.TrimSuffix(name, ".new"))
			if info, err := os.Stat(from); err == nil && info.IsDir() {
				if err := os.CopyFS(filepath.Join("killed", name), os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			writeFile(t, "killed", name, "")
		}
		writeFile(t, "killed", "training.lock", "process 1 on this-host\n")
		args := []string{"quantize", "runs/mails", "-o", "killed", "--no-dev"}
		if left.want != "" {
			status, _, log := call("", args...)
			if status != exitMistake || !strings.Contains(log, left.want) {
				t.Errorf("%q: %d, %s", left.names, status, log)
			}
			args = append(args, "--force")
		}
		if left.stays {
			if status, _, log := call("", args...); status != exitMistake || !runfolder.Exists("killed/notes.txt") {
				t.Errorf("%q --force: %d, %s", left.names, status, log)
			}
			continue
		}
		mustCall(t, "", args...)
		if got, want := namesIn(t, "killed"), namesIn(t, "int8"); !slices.Equal(got, want) {
			t.Errorf("%q: the folder has %q, want %q", left.names, got, want)
		}
		mustCall(t, mailTexts, "predict", "killed")
	}
}

func TestTheRunThatAKilledQuantizationReplacesIsResumed(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev")
	for from, to := range map[string]string{"runs/mails": "killed/replaced-run", "int8/best": "killed/best"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, "killed", "training.lock", "process 1 on this-host\n")
	const advice = "jenga train --resume killed"
	if status, _, log := call(mailTexts, "predict", "killed"); status == 0 || !strings.Contains(log, advice) {
		t.Errorf("predict: %d, %s; want %s", status, log, advice)
	}
	mustCall(t, "", strings.Fields(advice)[1:]...)
	if got, want := namesIn(t, "killed"), namesIn(t, "runs/mails"); !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
	mustCall(t, mailTexts, "predict", "killed")
}

// namesIn returns the names of the files in a folder.
func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
