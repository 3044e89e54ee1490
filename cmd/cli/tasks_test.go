package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment, "training:", `  - name: other
    type: classification
    data: {path: mails.csv, text: body, label: team}
training:`, 1))
	mustCall(t, "", "train", "--set", "training.num_epochs=1", "-o", "runs/two")
	mustCall(t, "", "calibrate", "runs/two")
	before := mustCall(t, "the card\n", "predict", "runs/two", "--task", "other")

	if out := mustCall(t, "", "tasks", "runs/two"); !strings.Contains(out, "other  classification  other  linear  2") {
		t.Errorf("tasks: %s", out)
	}
	if out := mustCall(t, "", "tasks", "runs/two", "--json"); !strings.Contains(out, `"labels":["billing","support"]`) {
		t.Errorf("tasks --json: %s", out)
	}
	out := mustCall(t, "", "tasks", "runs/two", "--extract", "other", "--rename", "other=team", "-o", "runs/one")
	if out != "tasks: team; the model is in runs/one\n" {
		t.Errorf("tasks: %s", out)
	}
	after := mustCall(t, "the card\n", "predict", "runs/one")
	if want := strings.Replace(before, `"other":{`, `"team":{`, 1); after != want {
		t.Errorf("predict: %swant %s", after, want)
	}
	mustCall(t, "", "eval", "runs/one")
	if status, _, log := call("", "train", "--resume", "runs/one"); status != 0 ||
		!strings.HasPrefix(log, "runs/one: its training is finished, before the first step") {
		t.Errorf("train --resume: %d, %s", status, log)
	}
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"runs/two --drop othr --out x", `--drop: no task "othr"; did you mean "other"?`, exitMistake},
		{"runs/two --drop other,team --out x", "--drop: no task is left", exitMistake},
		{"runs/two --drop other", "want --out DIR", exitUsage},
		{"runs/two --out x", "want --drop, --extract or --rename", exitUsage},
		{"runs/two --rename other --out x", "want TASK=NAME", exitUsage},
		{"runs/two --rename other=a,other=b --out x", "want one", exitUsage},
		{"runs/two --drop other --out runs/one", "name another folder by --out, or replace it by --force", exitMistake},
		{"runs/one --set training.num_epochs=2", "train its model on in a new run, of runs/one/experiment.yaml with " +
			"model.base_model: runs/one, model.encoder: null and tokenizer: null", exitMistake},
	} {
		command := "tasks"
		if strings.Contains(c.args, "--set") {
			command = "train --resume"
		}
		status, _, log := call("", strings.Fields(command+" "+c.args)...)
		if status != c.status || !strings.Contains(log, c.want) {
			t.Errorf("%s %s: status %d, %s", command, c.args, status, log)
		}
	}
	trainsOn(t, "runs/one")
}

// trainsOn trains the model of a run that is made of another on, as an error says, and the new run by another command.
func trainsOn(t *testing.T, folder string) {
	t.Helper()
	mustCall(t, "", "train", folder+"/experiment.yaml", "--set", "model.base_model="+folder, "--set",
		"model.encoder=null", "--set", "tokenizer=null", "--set", "training.num_epochs=2", "--out", "on")
	status, _, log := call("", "train", folder+"/experiment.yaml", "--set", "training.num_epochs=1", "--out", "on")
	if want := "on holds a run: jenga train --resume on trains it on with more training.num_epochs; or name another " +
		"folder by --out"; status != exitMistake || !strings.Contains(log, want) {
		t.Errorf("train: %d, %s, want %s", status, log, want)
	}
}

// Of a run without the first task of a group, whose labels divided the file, dev is what it was.
func TestTheDevSplitOfARunWithoutItsFirstTask(t *testing.T) {
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rows, "the card %d is number %d,label%d,%s\n", i, i%7, i*i%10, []string{"a", "b", "a;b"}[i%3])
	}
	writeFile(t, ".", "mails.csv", "body,team,topics\n"+rows.String())
	writeFile(t, ".", "experiment.yaml", strings.Replace(strings.Replace(smallExperiment, "training:",
		`  - {name: topics, type: multi_label, data: {same_as: team, label: topics}, separator: ";"}
training:`, 1), "{dev: 0.2}", "{dev: 0.3}", 1))
	mustCall(t, "", "train", "--set", "training.num_epochs=1", "--out", "runs/two")
	mustCall(t, "", "tasks", "runs/two", "--extract", "topics", "--out", "runs/one")
	scores := func(run string) string {
		_, after, _ := strings.Cut(mustCall(t, "", "eval", run, "--task", "topics", "--json"), `"loss":`)
		value, _, _ := strings.Cut(after, ",")
		return value
	}
	if one, two := scores("runs/one"), scores("runs/two"); one != two || two == "" {
		t.Errorf("loss %q without the first task, %q with it", one, two)
	}

	for _, key := range []string{"encoding=utf-8", "team.encoding=utf-8"} { // the second of a task of runs/two alone
		out := mustCall(t, "", "eval", "runs/two", "--against", "runs/one", "--set-data", key)
		if !strings.Contains(out, "against runs/one, on the same texts:\n") || !strings.HasSuffix(out, "+0.00\n") {
			t.Errorf("eval --against: %s", out)
		}
	}

	// a file that is not the one that the run lists is divided anew
	writeFile(t, ".", "mails.csv", "body,team,topics\n"+rows.String()+"one more,label1,a\n")
	mustCall(t, "", "eval", "runs/one")

	// a list that is damaged
	writeFile(t, "runs/one", "splits.jsonl", `{"tasks":[`)
	for _, command := range []string{"eval runs/one", "quantize runs/one --out runs/small"} {
		status, _, log := call("", strings.Fields(command)...)
		if status != exitMistake || !strings.Contains(log, "splits.jsonl: unexpected EOF") {
			t.Errorf("%s: %d, %s", command, status, log)
		}
	}
}

func TestMisspeltPathsAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yml", smallExperiment)
	for _, c := range []struct{ args, want string }{
		{"train", `experiment.yaml: no such file; did you mean "experiment.yml"?`},
		{"check exprimnt.yml", `exprimnt.yml: no such file; did you mean "experiment.yml"?`},
		{"train mails.yml", "mails.yml: no such file\n"},
		{"train experiment.yml --set training.num_epochs=1", ""},
		{"train experiment.yml --set training.num_epochs=1 --out runs/quickstart", ""},
		{"train runs/quikstart", `runs/quikstart: no such file; did you mean "runs/quickstart"?`},
		{"train rnus/quickstart", `rnus/quickstart: no such file; did you mean "runs/quickstart"?`},
		{"train --resume runs/quikstart", `runs/quikstart: no such folder; did you mean "runs/quickstart"?` + "\n"},
		{"train --resume --out runs/quikstart", `runs/quikstart: no such folder; did you mean "runs/quickstart"?` +
			"\n"}, // and no advice to begin a run of that name
		{"train --resume runs/quickstrt/last", `no such folder; did you mean "runs/quickstart/last"?` + "\n"},
		{"check quikstart.yaml", "no such file; did you mean experiments/quickstart.yaml, which ships with jenga?"},
		{"eval runs/mail", `runs/mail: no such folder; did you mean "runs/mails"?`},
		{"tasks runs/mailes", `runs/mailes: no such folder; did you mean "runs/mails"?`},
		{"predict rnus/mails", `rnus/mails: no such folder; did you mean "runs/mails"?`},
		{"eval runs/mails/bset", `runs/mails/bset: no such folder; did you mean "runs/mails/best"?`},
		{"train --resume rnus/mails", `rnus/mails: no such folder; did you mean "runs/mails"?`},
		{"train -resume runs/mails", `unknown shorthand flag: 'r' in -resume; did you mean "--resume"?`},
		{"evaluate runs/mails", `no command "evaluate"; did you mean "eval"? available: `},
		{"mails.csv", `no command "mails.csv", which is a file; want jenga init mails.csv`},
		{"predict runs/mails mials.csv", `mials.csv: no such file; did you mean "mails.csv"?`},
	} {
		status, _, log := call("", strings.Fields(c.args)...)
		if (status == 0) != (c.want == "") || !strings.Contains(log, c.want) {
			t.Errorf("%s: status %d, %s; want %s", c.args, status, log, c.want)
		}
	}
}
