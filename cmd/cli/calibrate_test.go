package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/calibrate"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/internal/files"
)

func TestCalibrate(t *testing.T) {
	trainMails(t)
	ask := func(flags ...string) string {
		t.Helper()
		status, out, log := call("the card\n", append([]string{"predict", "runs/mails"}, flags...)...)
		if status != 0 {
			t.Fatal(log)
		}
		return out
	}
	before := ask()
	status, out, log := call("", "calibrate", "runs/mails", "--conformal", "0.3", "--abstain", "0.9")
	for _, want := range []string{
		"dev, each half by what was fitted to the other; ECE in %:\ntask  head  examples  ECE",
		"\nteam, team: probabilities as they were, fitted to 4 examples\n",
		"\nanswered in %  from probability  accuracy in %\n100.00 ",
		"\nbelow probability 0.", "\nsets of probability 0.7 from ", "\nover 200 random halves ",
		"\nwritten to runs/mails/best/calibration.json\n",
	} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, %s%s\nwant %q", status, out, log, want)
		}
	}
	if !strings.Contains(log, `warning: task "team": head "team": `) || !strings.Contains(log, "want at least 50") {
		t.Errorf("%s\nwant a warning that dev is small", log)
	}
	if after := ask(); after == before || !strings.Contains(after, `"set":[`) {
		t.Errorf("predictions %s, before %s; want other ones, with sets", after, before)
	}

	calibrateToJSON(t)
	if after := ask(); strings.Contains(after, `"set"`) {
		t.Errorf("a calibration without sets is used beside the one before: %s", after)
	}

	removeCalibration(t)
	if after := ask(); after != before {
		t.Errorf("after its removal: %s, want %s", after, before)
	}
	mustCall(t, "", "calibrate", "runs/mails", "--abstain", "0.9")
	status, out, log = call("", "calibrate", "runs/mails")
	const removed = "\nruns/mails/best/calibration.json is removed: all heads answer as without a calibration\n"
	if after := ask(); status != 0 || after != before || !strings.HasSuffix(out, removed) {
		t.Errorf("%d, %s%s, predictions %s; want that of an earlier call removed", status, out, log, after)
	}
	const nothing = "\nnothing is written: all heads answer as without a calibration\n"
	if out := mustCall(t, "", "calibrate", "runs/mails"); !strings.HasSuffix(out, nothing) {
		t.Errorf("%s; want nothing written", out)
	}
	mustCall(t, "", "calibrate", "runs/mails", "--abstain", "0.9")
	for _, want := range []string{`"file":"","removed":true`, `"file":"","removed":false`} {
		if out := mustCall(t, "", "calibrate", "runs/mails", "--json"); !strings.Contains(out, want) {
			t.Errorf("%s; want %s", out, want)
		}
	}
	mistakesOfCalibrate(t)
}

// calibrateToJSON calibrates the run of trainMails by all mails, and checks the report as JSON.
func calibrateToJSON(t *testing.T) {
	t.Helper()
	status, out, log := call("", "calibrate", "runs/mails", "--report", "dev", "--json", "--data", "team=mails.csv",
		"--abstain", "0.2")
	var line struct {
		Split       string
		CrossFitted bool `json:"cross_fitted"`
		File        string
		Fitted      []struct{ Temperature float64 }
		Heads       []struct {
			Task     string
			Examples int
			Before   map[string]float64
			After    map[string]float64
			Curve    []map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(out), &line); status != 0 || err != nil {
		t.Fatal(status, err, log)
	}
	if line.Split != "mails.csv" || !line.CrossFitted || line.File != "runs/mails/best/calibration.json" ||
		len(line.Fitted) != 1 || line.Fitted[0].Temperature < 0.1 || len(line.Heads) != 1 ||
		line.Heads[0].Examples != strings.Count(mails(), "\n")-1 || len(line.Heads[0].Curve) != 6 ||
		!(line.Heads[0].Before["nll"] > 0 && line.Heads[0].After["brier"] > 0) {
		t.Errorf("%s, want the report of all mails", out)
	}
}

func TestAReportWithoutAKnownLabelHasNoNLL(t *testing.T) {
	var text strings.Builder
	line := calibrationLine{Heads: []calibrate.HeadReport{{Task: "team", Head: "team", Examples: 2}}}
	if err := line.write(&text); err != nil || !strings.Contains(text.String(), "0.0000  -    -\n") {
		t.Errorf("%s, %v; want - for NLL", text.String(), err)
	}
	if object, err := json.Marshal(line); err != nil || !strings.Contains(string(object), `"nll":null`) {
		t.Errorf("%s, %v; want null for nll", object, err)
	}
}

// Figures that a fit was selected by are too good.
func TestTheReportSaysWhatSelectsAFit(t *testing.T) {
	fitted := []checkpoint.HeadCalibration{{Temperature: 1}, {Temperature: 2}}
	for _, c := range []struct {
		line calibrationLine
		want bool
	}{
		{calibrationLine{CrossFitted: true, Fitted: fitted}, true},
		{calibrationLine{CrossFitted: true, Fitted: fitted[:1]}, false}, {calibrationLine{Fitted: fitted}, false},
	} {
		var text strings.Builder
		err := c.line.write(&text)
		if says := strings.Contains(text.String(), "figures are a little too good"); err != nil || says != c.want {
			t.Errorf("%+v: %s, %v; want a line that says so: %v", c.line, text.String(), err, c.want)
		}
	}
}

// removeCalibration removes that of the run of trainMails, which leaves its folder unlocked.
func removeCalibration(t *testing.T) {
	t.Helper()
	for _, want := range []string{"removed runs/mails/best/calibration.json\n", "there is no runs/mails/best/calib"} {
		status, out, log := call("", "calibrate", "runs/mails", "--remove")
		if status != 0 || out != "" || !strings.HasPrefix(log, want) {
			t.Errorf("%d, %s%s, want %s", status, out, log, want)
		}
	}
	if _, err := files.ReadFile("runs/mails/training.lock", 100); err == nil {
		t.Error("the run's folder is still locked")
	}
}

// mistakesOfCalibrate checks the errors for the run of trainMails.
func mistakesOfCalibrate(t *testing.T) {
	t.Helper()
	for _, test := range []struct {
		flags  string
		status int
		want   string
	}{
		{"--abstain 0", exitUsage, "--abstain 0: want a number between 0 and 1"},
		{"--abstain NaN", exitUsage, "--abstain NaN: want a number between 0 and 1"},
		{"--conformal 0.9", exitUsage, "--conformal 0.9: sets without the right label for 90 % of texts; want " +
			"at most 0.5, such as 0.1 for sets that have it for 90 %"},
		{"--conformal 1", exitUsage, "--conformal 1: want a number between 0 and 1"},
		{"--at-precision 90", exitUsage, "--at-precision 90: want a number between 0 and 1"},
		{"--at-precision 0.9 --abstain 0.1", exitUsage, "--at-precision and --abstain: both fit"},
		{"--at-precision 0.9 --thresholds f1", exitUsage, "--at-precision and --thresholds f1: both fit"},
		{"--thresholds f2", exitUsage, `--thresholds "f2"`},
		{"--report train", exitUsage, `--report "train"`},
		{"--remove --json", exitUsage, "want it without --json and --data"},
		{"--remove --abstain 0.1", exitUsage, "want it without flags that fit"},
		{"--data tem=mails.csv", exitMistake, `--data: no task "tem"; did you mean "team"?`},
		{"--thresholds f1", exitMistake, "runs/mails: no head predicts several labels"},
		{"--report test", exitMistake, "has no test data; leave out --report, for a report on what is fitted to\n"},
	} {
		status, out, log := call("", append([]string{"calibrate", "runs/mails"}, strings.Fields(test.flags)...)...)
		if status != test.status || out != "" || !strings.Contains(log, test.want) {
			t.Errorf("%s: %d, %s%s\nwant %d, %s", test.flags, status, out, log, test.status, test.want)
		}
	}
}

// Of the labels one occurs in training alone, and others in test alone.
func TestCalibrateAndEvalHaveTheSameMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "train.csv", mails()+"the court,legal\n")
	writeFile(t, ".", "dev.csv", mails())
	writeFile(t, ".", "test.csv", mails()+"the card and the button,\"billing,support,sales\"\nthe shop,shipping\n")
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("type: classification", "type: multi_label",
		"path: mails.csv", "train: train.csv, dev: dev.csv, test: test.csv", "split: {dev: 0.2}, ", "").Replace(
		smallExperiment))
	if status, _, log := call("", "train", "--set", "training.num_epochs=5"); status != 0 {
		t.Fatal(log)
	}
	evaluated := func() map[string]any {
		var line struct {
			Tasks map[string]struct{ Heads map[string]map[string]any }
		}
		status, out, log := call("", "eval", "runs/mails", "--split", "test", "--json")
		if err := json.Unmarshal([]byte(out), &line); status != 0 || err != nil {
			t.Fatal(status, err, out, log)
		}
		return line.Tasks["team"].Heads["team"]
	}
	before := evaluated()
	status, out, log := call("", "calibrate", "runs/mails", "--thresholds", "f1", "--report", "test", "--json")
	var line struct {
		Heads []struct {
			LabelsBefore map[string]float64 `json:"labels_before"`
			LabelsAfter  map[string]float64 `json:"labels_after"`
		}
	}
	if err := json.Unmarshal([]byte(out), &line); status != 0 || err != nil || len(line.Heads) != 1 {
		t.Fatal(status, err, out, log)
	}
	after := evaluated()
	for calibrated, names := range map[string]string{
		"precision": "precision_micro", "recall": "recall_micro", "f1_micro": "f1_micro", "f1_macro": "f1_macro",
	} {
		if got, want := line.Heads[0].LabelsBefore[calibrated], before[names]; any(got) != want || got == 0 {
			t.Errorf("before: %s %v, of eval %v", calibrated, got, want)
		}
		if got, want := line.Heads[0].LabelsAfter[calibrated], after[names]; any(got) != want || got == 0 {
			t.Errorf("after: %s %v, of eval %v", calibrated, got, want)
		}
	}
}

// What --data names takes the place of dev, in the title, in JSON and in warnings.
func TestDataOfCalibrate(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"train.csv", "dev.csv", "test.csv", "more.csv"} {
		writeFile(t, ".", file, mails())
	}
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("path: mails.csv", "train: train.csv, dev: dev.csv, "+
		"test: test.csv", "split: {dev: 0.2}, ", "").Replace(smallExperiment))
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	const trained, tested = "the run was trained on this file", "test is read from this file too"
	for _, test := range []struct{ flags, title, warning string }{
		{"", "dev, each half by what was fitted to the other;", ""},
		{"--data team=more.csv", "more.csv, each half by what was fitted to the other;", ""},
		{"--report test", "test, by what was fitted to dev;", ""},
		{"--report test --data team=more.csv", "test, by what was fitted to more.csv;", ""},
		{"--report test --data team=test.csv", "test, by what was fitted to test.csv;",
			"warning: --data team=test.csv: " + tested},
		{"--data team=test.csv", "test.csv, each half", ""},
		{"--data team=t*n.csv", "t*n.csv, each half", "warning: --data team=train.csv: " + trained},
		{"--data team=dev.csv", "dev.csv, each half", ""},
	} {
		status, out, log := call("", append([]string{"calibrate", "runs/mails"}, strings.Fields(test.flags)...)...)
		warned := strings.Contains(log, trained) || strings.Contains(log, tested)
		if status != 0 || !strings.HasPrefix(out, test.title) || !strings.Contains(log, test.warning) ||
			warned != (test.warning != "") {
			t.Errorf("%s: %d, %s%s\nwant %s, %q", test.flags, status, out, log, test.title, test.warning)
		}
	}
	status, out, log := call("", "calibrate", "runs/mails", "--report", "test", "--data", "team=more.csv", "--json")
	if status != 0 || !strings.HasPrefix(out, `{"split":"test","fitted_to":"more.csv",`) {
		t.Errorf("%d, %s%s", status, out, log)
	}
}

func TestDataOfHeadsThatAreNotCalibratedIsNotRead(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "marked.jsonl", marked("entities"))
	writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment, "training:",
		"  - name: things\n    type: ner\n    data: {path: marked.jsonl, text: body, split: {dev: 0.2}}\ntraining:", 1))
	mustCall(t, "", "train", "--set", "training.num_epochs=1")
	if err := os.Remove("marked.jsonl"); err != nil {
		t.Fatal(err)
	}
	if out := mustCall(t, "", "calibrate", "runs/mails"); !strings.HasPrefix(out, "dev, each half") {
		t.Errorf("%s, want a report on dev", out)
	}
	status, out, log := call("", "calibrate", "runs/mails", "--data", "things=mails.csv")
	if status != exitMistake || !strings.Contains(log, "--data things=mails.csv: no head of its texts is read; leave") {
		t.Errorf("%d, %s%s", status, out, log)
	}
}
