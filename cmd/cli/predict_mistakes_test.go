package cli

import (
	"strings"
	"testing"
)

func TestTextsThatAreNotWhereTheyBelong(t *testing.T) {
	trainMails(t)
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"predict", "runs/mails", "the card"}, exitMistake,
			"the card: no such file; want a file with a text in each line, or the text on stdin: echo TEXT | "},
		{[]string{"explain", "runs/mails", "the", "card"}, exitUsage,
			`unexpected argument "card"; want a text of several words in quotation marks`},
	} {
		if status, _, log := call("", test.args...); status != test.status || !strings.Contains(log, test.want) {
			t.Errorf("%v: status %d, %s; want %d, %s", test.args, status, log, test.status, test.want)
		}
	}
}

func TestAFileThatEndsAsTheRunsDataButIsReadAsLinesIsAWarning(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.train", mails())
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("mails.csv", "mails.train, format: csv").
		Replace(smallExperiment))
	if status, _, log := call("", "train", "--set", "training.num_epochs=1", "--out", "run"); status != 0 {
		t.Fatal(log)
	}
	const want = "mails.train is read as a text in each line, while the run's data mails.train is csv; give it a " +
		"name that ends in .csv to have it read so"
	if status, _, log := call("", "predict", "run", "mails.train"); status != 0 || !strings.Contains(log, want) {
		t.Errorf("status %d, %s; want %s", status, log, want)
	}
	writeFile(t, ".", "texts.txt", "the card\n")
	if status, _, log := call("", "predict", "run", "texts.txt"); status != 0 || strings.Contains(log, "is read as") {
		t.Errorf("status %d, %s", status, log)
	}
}
