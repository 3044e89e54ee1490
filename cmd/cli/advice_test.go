package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// noModels hides the models of this machine, so that init trains from scratch.
func noModels(t *testing.T) {
	t.Helper()
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
}

func TestAWordARowFromInitToPredict(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases/word-a-row/st.csv"))
	if err != nil {
		t.Fatal(err)
	}
	// the same with the value in the first row of each sentence alone
	first, before := "", ""
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(line, ",")
		if id == before {
			id = ""
		} else {
			before = id
		}
		first += id + "," + rest
	}
	// and as JSON lines
	objects := ""
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if cells := strings.Split(line, ","); i > 0 {
			objects += fmt.Sprintf(`{"sentence_id": %s, "words": %q, "labels": %q}`+"\n", cells[0], cells[1], cells[2])
		}
	}
	for name, content := range map[string]string{"st.csv": string(text), "first.csv": first, "st.jsonl": objects} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			noModels(t)
			writeFile(t, ".", name, content)
			mustCall(t, "", "init", name)
			out := mustCall(t, "", "check", "--set", "training.max_steps=1")
			if !strings.Contains(out, "train  48 ") {
				t.Errorf("check has no 48 sentences:\n%s", out)
			}
			mustCall(t, "", "train", "--set", "training.max_steps=1", "--out", "run")
			if out := mustCall(t, "", "predict", "run", name); strings.Count(out, "\n") != 60 {
				t.Errorf("%d predictions, want 60", strings.Count(out, "\n"))
			}
			task := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			mustCall(t, "", "eval", "run", "--data", task+"="+name)

			// the output is a file as the input is
			mustCall(t, "", "predict", "run", name, "--out", "out.csv")
			rows, _ := os.ReadFile("out.csv")
			if n := strings.Count(string(rows), "\n"); n != 481 {
				t.Errorf("out.csv has %d lines, want the header and 480 rows", n)
			}
			mustCall(t, "", "eval", "run", "--data", task+"=out.csv")
		})
	}
}

// What the errors of predict, eval and embed advise can be done by --set-data, as it is written.
func TestTheErrorsOfDataNameAFlagThatWorks(t *testing.T) {
	trainedMails(t)
	mails, _ := os.ReadFile("mails.csv")
	rows := string(mails)
	header, _, _ := strings.Cut(rows, "\n")
	text, label, _ := strings.Cut(header, ",")
	windows := strings.Replace(rows, "the ", "th\xe9 ", 1)
	writeFile(t, ".", "windows.csv", windows)
	writeFile(t, ".", "semicolons.csv", strings.ReplaceAll(rows, ",", ";"))
	writeFile(t, ".", "renamed.csv", strings.Replace(rows, text, "inhalt", 1))
	writeFile(t, ".", "labels.csv", strings.Replace(rows, label, "abteilung", 1))
	writeFile(t, ".", "mails.dat", rows)
	const task = "team"
	for _, test := range []struct{ args, advice, set string }{
		{"predict runs/mails windows.csv", "--set-data encoding=cp1252", "encoding=cp1252"},
		{"eval runs/mails --data " + task + "=windows.csv", "--set-data encoding=cp1252", "encoding=cp1252"},
		{"predict runs/mails semicolons.csv", "--set-data 'delimiter=;'", "delimiter=;"},
		{"eval runs/mails --data " + task + "=semicolons.csv", "--set-data 'delimiter=;'", "delimiter=;"},
		{"predict runs/mails renamed.csv", "--set-data text=COLUMN", "text=inhalt"},
		{"eval runs/mails --data " + task + "=renamed.csv", "--set-data text=", "text=inhalt"},
		{"eval runs/mails --data " + task + "=labels.csv", "--set-data label=COLUMN", "label=abteilung"},
		{"eval runs/mails --data " + task + "=mails.dat", "--set-data format=TYPE", "format=csv"},
		{"embed runs/mails renamed.csv", "--set-data text=COLUMN", "text=inhalt"},
		{"embed runs/mails semicolons.csv", "--set-data 'delimiter=;'", "delimiter=;"},
	} {
		args := strings.Fields(test.args)
		if status, _, log := call("", args...); status == 0 || !strings.Contains(log, test.advice) {
			t.Errorf("%s: %d, %s; want an error that names %s", test.args, status, log, test.advice)
		}
		if status, _, log := call("", append(args, "--set-data", test.set)...); status != 0 {
			t.Errorf("%s --set-data %s: %d, %s", test.args, test.set, status, log)
		}
	}
	writeFile(t, ".", "accents.csv", strings.Replace(rows, "the ", "thé ", 1))
	args := []string{"eval", "runs/mails", "--data", task + "=accents.csv", "--set-data"}
	const advice = "; --set-data encoding=utf-8 reads"
	if _, _, log := call("", append(args, "encoding=cp1252")...); !strings.Contains(log, advice) {
		t.Errorf("eval of UTF-8 as cp1252: %s; want a warning with %s", log, advice)
	}
	if _, _, log := call("", append(args, "encoding=utf-8")...); strings.Contains(log, "--set-data encoding") {
		t.Errorf("eval of UTF-8: %s", log)
	}
	mustCall(t, "", "embed", "runs/mails", "mails.csv") // whose text is that of the run's data
	for args, want := range map[string]string{
		"predict runs/mails --set-data encoding=cp1252":        "stdin has a text in each line",
		"predict runs/mails mails.csv --set-data encodin=utf8": `no key of data "encodin"; did you mean "encoding"?`,
		"predict runs/mails mails.csv --set-data taem.quote=a": `taem.quote=a: no task "taem"; did you mean "team"?`,
		"predict runs/mails mails.csv --set-data encoding":     "want KEY=VALUE",
		"eval runs/mails --set-data encoding=none-such":        "no encoding",
	} {
		if status, _, log := call("x", strings.Fields(args)...); status == 0 || !strings.Contains(log, want) {
			t.Errorf("%s: %d, %s; want %s", args, status, log, want)
		}
	}
}

func TestEachMissingColumnNamesTheKeyOfItsOwn(t *testing.T) {
	err := namingSetData(errors.New("a: no field \"tone\" for label; available: x\n" +
		"b: no field \"size\" for value; have x"))
	const want = "a: no field \"tone\" for label; available: x; --set-data label=COLUMN names it\n" +
		"b: no field \"size\" for value; have x; --set-data value=COLUMN names it"
	if err.Error() != want {
		t.Errorf("%s\nwant\n%s", err, want)
	}
}

func TestInitMakesEnoughStepsAndTakesAnEncodingAndADelimiter(t *testing.T) {
	t.Chdir(t.TempDir())
	noModels(t)
	var rows strings.Builder
	for i := range 320 {
		fmt.Fprintf(&rows, "this is caf\xe9 %d~%s\n", i, []string{"red", "blue"}[i%2])
	}
	writeFile(t, ".", "a.csv", "body~team\n"+rows.String())
	out := mustCall(t, "", "init", "a.csv", "--encoding", "cp850", "--delimiter", "~", "--out", "-")
	for _, want := range []string{"encoding: cp850\n", "delimiter: \"~\"\n", "num_epochs: 38\n", "about 8 steps",
		"jenga lr-find", "eval_strategy: steps\n", "eval_steps: 16\n",
		"text: body\n", "label: team\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	writeFile(t, ".", "header.csv", "text,label\n")
	status, _, log := call("", "init", "header.csv")
	if status == 0 || !strings.Contains(log, "header.csv: no records: its one line, text, label, names columns") {
		t.Errorf("init of a header: %d, %s", status, log)
	}
	if out := mustCall(t, "", "parts", "sampler"); !strings.HasPrefix(out, "sampling ") {
		t.Errorf("parts sampler:\n%s", out)
	}
	writeFile(t, ".", "tab.yaml", "project_name: x\ntasks:\n\t- name: a\n")
	for args, want := range map[string]string{
		"check tab.yaml":                    "tab.yaml:3:1: not YAML: the line is indented with a tab",
		"check tab.yaml --set num_epochs=1": "tab.yaml:3:1",
	} {
		if _, _, log := call("", strings.Fields(args)...); !strings.Contains(log, want) {
			t.Errorf("%s: %s, want %s", args, log, want)
		}
	}
	mustCall(t, "", "init", "a.csv", "--delimiter", "~")
	if _, _, log := call("", "check", "--set", "num_epochs=1"); !strings.Contains(log,
		`did you mean "training.num_epochs"?`) {
		t.Errorf("--set num_epochs=1: %s", log)
	}
}

// Where the best epoch was the last, the command that training names trains on.
func TestTrainingOnIsAdvisedWhereTheBestEpochWasTheLast(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	const better, worse = " --set training.learning_rate=1e-4", " --set training.learning_rate=1e-4 " +
		"--set training.greater_is_better=true"
	for _, test := range []struct {
		sets, out string
		epochs    int // that are advised; 0: none
	}{
		{better, "plain", 4},
		{better + " --set training.ema=0.5", "a mean", 4},
		{better + " --set training.eval_strategy=steps --set training.eval_steps=2", "steps", 4},
		{better + " --set model.freeze=embeddings", "frozen", 4},
		{worse, "worse", 0},
		{better + " --set training.num_epochs=1", "one", 0},
		{better + " --set training.max_steps=8", "chosen", 0},
		{better + " --set training.save_strategy=no", "not-saved", 0},
	} {
		const two = "train --set training.num_epochs=2 --set training.metric_for_best_model=eval_loss"
		args := strings.Fields(two + test.sets)
		out := mustCall(t, "", append(args, "--out", test.out)...)
		_, command, advised := strings.Cut(out, "by jenga ")
		if advised != (test.epochs > 0) {
			t.Errorf("%s: want %d epochs advised:\n%s", test.out, test.epochs, out)
		}
		if !advised {
			continue
		}
		folder := shellWord(test.out)
		want := fmt.Sprintf("train --resume %s --set training.num_epochs=%d\n", folder, test.epochs)
		if command != want {
			t.Errorf("%s: the command is %q, want %q", test.out, command, want)
		}
		args = strings.Fields(strings.Replace(command, folder, "FOLDER", 1))
		args[slices.Index(args, "FOLDER")] = test.out
		if out := mustCall(t, "", args...); !strings.Contains(out, "best on dev after epoch") {
			t.Errorf("jenga %s%s", command, out)
		}
	}
}

// Of a file or a model that does not exist, errors name what has almost its name, and that works in its place.
func TestMisspeltNamesGetTheNearOnes(t *testing.T) {
	trainedMails(t)
	noModels(t)
	models := t.TempDir()
	t.Setenv("JENGA_MODELS", models)
	t.Setenv("JENGA_DATA", models)
	cache := os.Getenv("HF_HUB_CACHE")
	for _, to := range []string{filepath.Join(models, "mailbert"), "experiments/weights",
		filepath.Join(cache, "models--acme--mail-base", "snapshots", "1")} {
		if err := os.CopyFS(to, os.DirFS("runs/mails/best/encoder")); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, cache, "models--acme--mail-base/refs/main", "1")
	writeFile(t, models, "corpus/letters.csv", mails())
	writeFile(t, ".", "experiments/mails.csv", mails())
	writeFile(t, ".", "mails.txt", "they paid\n")
	experiment := func(model, path string) string {
		return fmt.Sprintf("project_name: x\nmodel: {base_model: %s}\ntasks:\n  - {name: team, type: classification, "+
			"data: {path: %s, text: body, label: team}}\ntraining: {num_epochs: 1}\n", model, path)
	}
	for _, test := range []struct{ args, model, path, wrong, near string }{
		{"check experiments/x.yaml", "malbert", "mails.csv", "malbert", "mailbert"},
		{"check experiments/x.yaml", "wieghts", "mails.csv", "wieghts", "weights"},
		{"check experiments/x.yaml", "../experiments/weight", "mails.csv", "experiments/weight", "experiments/weights"},
		{"check experiments/x.yaml", "acme/mail-bas", "mails.csv", "acme/mail-bas", "acme/mail-base"},
		{"check experiments/x.yaml", "../runs/mail", "mails.csv", "../runs/mail", "../runs/mails"},
		{"check experiments/x.yaml", "weights", "mail.csv", "mail.csv", "mails.csv"},
		{"check experiments/x.yaml", "weights", "corpus/leters.csv", "leters.csv", "letters.csv"},
		{"check experiments/x.yaml", "weights", "../mials.csv", "../mials.csv", "../mails.csv"},
		{"predict runs/mails mial.txt", "", "", "mial.txt", "mails.txt"},
		{"predict runs/mails mail.csv", "", "", "mail.csv", "mails.csv"},
		{"eval runs/mails --data team=mailz.csv", "", "", "mailz.csv", "mails.csv"},
		{"init mals.csv --out -", "", "", "mals.csv", "mails.csv"},
		{"embed malbert mails.txt", "", "", "malbert", "mailbert"},
	} {
		args := strings.Fields(test.args)
		writeFile(t, ".", "experiments/x.yaml", experiment(test.model, test.path))
		status, _, log := call("", args...)
		if status == 0 || !strings.Contains(log, "did you mean ") || !strings.Contains(log, test.near+`"?`) {
			t.Errorf("%s, %s, %s: %d, %s", test.args, test.model, test.path, status, log)
		}
		right := strings.Replace(experiment(test.model, test.path), test.wrong, test.near, 1)
		writeFile(t, ".", "experiments/x.yaml", right)
		mustCall(t, "", strings.Fields(strings.Replace(test.args, test.wrong, test.near, 1))...)
	}
	for _, args := range []string{"predict runs/mails other.dat", "embed nothing-like-it mails.txt"} {
		if _, _, log := call("", strings.Fields(args)...); strings.Contains(log, "did you mean") {
			t.Errorf("%s: %s", args, log)
		}
	}
}
