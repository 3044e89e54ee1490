package cli

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/events"
)

// rateTest makes a small experiment the working directory, and returns its files.
func rateTest(t *testing.T) []string {
	t.Helper()
	t.Chdir(t.TempDir())
	var mails strings.Builder
	mails.WriteString("body,team\n")
	for i := range 40 {
		mails.WriteString([]string{"please pay me,money\n", "it does not work,help\n"}[i%2])
	}
	writeFile(t, ".", "mails.csv", mails.String())
	writeFile(t, ".", "experiment.yaml", `
project_name: mails
model: {encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}
tokenizer: {train: {vocab_size: 100}}
tasks:
  - {name: team, type: classification, data: {train: mails.csv, dev: mails.csv, text: body, label: team}}
training: {head_learning_rate: 1.0e-3, warmup_steps: 1000, ema: 0.9}
`)
	return names(t)
}

// names lists the files of the working directory.
func names(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestLRFind(t *testing.T) {
	before := rateTest(t)
	status, out, log := call("", "lr-find", "--from", "1e-5", "--steps", "60",
		"--set", "training.optimizer={type: adamw}")
	for _, want := range []string{"step  rate", "\n1     1.00e-05", "suggested learning rate: ",
		"jenga train experiment.yaml --set 'training.optimizer={type: adamw}' --set training.learning_rate="} {
		if status != 0 || !strings.Contains(out, want) {
			t.Fatalf("lr-find: %d, no %q in\n%s%s", status, want, out, log)
		}
	}

	// as JSON, with the same bytes again
	status, out, log = call("", "lr-find", "--json", "--from", "1e-5", "--steps", "60")
	_, again, _ := call("", "lr-find", "--json", "--from", "1e-5", "--steps", "60", "--threads", "1")
	var got events.RateLine
	if err := json.Unmarshal([]byte(out), &got); status != 0 || err != nil || out != again {
		t.Fatalf("lr-find --json: %d, %v\n%s%s", status, err, out, log)
	}
	for i, p := range got.Curve {
		want := 1e-5 * math.Pow(1e5, float64(i)/59)
		if p.Step != i+1 || !(math.Abs(p.Rate-want) <= 1e-9*want) || !(p.Loss >= 0) || !(p.Smoothed > 0) {
			t.Errorf("point %d is %+v, want the rate %v", i+1, p, want)
		}
	}
	if got.Suggested == nil || *got.Suggested != *got.Lowest/10 || got.Diverged != (len(got.Curve) < 60) {
		t.Errorf("got %s", out)
	}

	// nothing is saved
	if after := names(t); len(after) != len(before) {
		t.Errorf("files %q, want %q", after, before)
	}
}

func TestLRFindSaysThatItHasNoTeachers(t *testing.T) {
	rateTest(t)
	status, _, log := call("", "lr-find", "--steps", "10", "--set", "training.teachers=alone")
	if status != 0 || !strings.Contains(log, "warning: the test learns from labels alone, without teachers") {
		t.Errorf("lr-find: %d, %s; want the warning", status, log)
	}
}

func TestLRFindRefuses(t *testing.T) {
	rateTest(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--from", "0"}, exitUsage, "--from 0: want a rate above 0"},
		{[]string{"--from", "NaN"}, exitUsage, "--from NaN: want a rate above 0"},
		{[]string{"--to", "1e-8"}, exitUsage, "--to 1e-08: want a rate above that of --from, 1e-07"},
		{[]string{"--to", "Inf"}, exitUsage, "and at most 1e6"},
		{[]string{"--steps", "9"}, exitUsage, "--steps 9: want a number from 10"},
		{[]string{"absent.yaml"}, exitMistake, "absent.yaml: no such file"},
		{[]string{"--set", "training.head_learning_rate=", "--set", "training.warmup_steps=",
			"--set", "training.optimizer={type: adafactor, relative_step: true}"}, exitMistake,
			"optimizer: it computes the learning rate, so that there is none to find"},
	} {
		status, out, log := call("", append([]string{"lr-find"}, c.args...)...)
		if status != c.status || !strings.Contains(log, c.want) || out != "" {
			t.Errorf("lr-find %q: %d, %s%s; want %d, %s", c.args, status, out, log, c.status, c.want)
		}
	}
}
