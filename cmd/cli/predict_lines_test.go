package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// trainMails trains the small experiment on mails in a folder of its own, for an epoch.
func trainMails(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
}

// linesOf parses lines of JSON.
func linesOf(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.Lines(out) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, line)
	}
	return all
}

func TestPredictionsHaveTheirLineAndItsFields(t *testing.T) {
	trainMails(t)
	const in = "the card\n\n" + `{"id": "x", "body": "a bill", "tasks": 1, "note": "n"}` + "\n" + `{"id": 2}` + "\n"
	for _, test := range []struct{ flags, want string }{
		{"", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","input":{"tasks":1},"tasks":{"team":`},
		{"--keep all -", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","input":{"tasks":1},"tasks":{`},
		{"--keep none", `"line":3,"text":"a bill","truncated":0,"tasks":{"team":`},
		{"--keep note,id", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","tasks":{"team":`},
		{"--task team --keep id", `"line":3,"id":"x","text":"a bill","truncated":0,"tasks":{"team":`},
	} {
		status, out, log := call(in, append([]string{"predict", "runs/mails"}, strings.Fields(test.flags)...)...)
		lines := strings.Split(out, "\n")
		if status != exitMistake || len(lines) != 4 || !strings.HasPrefix(lines[0], `{"line":1,"text":"the card",`) ||
			!strings.HasPrefix(lines[1], "{"+test.want) || !strings.HasSuffix(lines[2], `,"line":4}`) {
			t.Errorf("%s: %d\n%s%s\nwant %s", test.flags, status, out, log, test.want)
		}
	}
	if _, _, log := call(in, "predict", "runs/mails", "--keep", "id,nte"); !strings.Contains(log,
		`warning: --keep: no line has a field "nte" besides its text`) {
		t.Errorf("no warning of a field that no line has: %s", log)
	}
	if status, _, log := call(in, "predict", "runs/mails", "--task", "tam"); status != exitMistake ||
		!strings.Contains(log, "--task: ") {
		t.Errorf("an unknown task: %d, %s", status, log)
	}
}

func TestPredictionsGoToAFile(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "in.txt", "the card\n")
	status, out, log := call("", "predict", "runs/mails", "in.txt", "--out", "out.jsonl")
	if text := readFile(t, "out.jsonl"); status != 0 || out != "" || len(linesOf(t, text)) != 1 {
		t.Errorf("%d, %s%s and in the file %s", status, out, log, text)
	}
	if status, _, log := call("", "predict", "runs/mails", "in.txt", "--out", "in.txt"); status != exitMistake ||
		readFile(t, "in.txt") != "the card\n" {
		t.Errorf("the input is overwritten: %d, %s", status, log)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	if status, _, log := call("", "predict", "runs/mails", "in.txt", "--out", "/dev/full"); status != exitMistake {
		t.Errorf("a full disk: %d, %s", status, log)
	}
}
