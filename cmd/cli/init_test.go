package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/shared"
)

// lines makes 24 lines of a format with a number and a color.
func lines(format string) string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, format, i, []string{"red", "green", "blue"}[i%3])
	}
	return b.String()
}

// initSamples are small data of each format.
var initSamples = []struct {
	name  string
	files map[string]string
	args  string
	want  string // types of the tasks
}{
	{"csv", map[string]string{
		"mails.csv": "body;team\n" + lines("this is mail %d;%s\n"),
	}, "mails.csv", "classification"},
	{"tsv without a header", map[string]string{"a.tsv": lines("this is mail %d\t%s\n")}, "a.tsv", "classification"},
	{"labels before texts", map[string]string{"a.txt": lines("%[2]s this is mail %[1]d\n")}, "a.txt", "classification"},
	{"jsonl of three labels", map[string]string{
		"train.jsonl": lines(`{"msg": "this is %d", "team": "%[2]s", "size": %[1]d.5, "tags": ["%[2]s", "x"]}` + "\n"),
		"dev.jsonl":   lines(`{"msg": "that is %d", "team": "%[2]s", "size": %[1]d.5, "tags": ["%[2]s", "x"]}` + "\n"),
	}, "train.jsonl dev.jsonl", "regression multi_label classification"},
	{"json", map[string]string{"a.json": "[" + lines(`{"text": "this is %d", "label": "%s"},`) +
		`{"text": "so is this", "label": "red"}]`}, "a.json", "classification"},
	{"conll", map[string]string{"train.conll": lines("mail O\n%[1]d B-%[2]s\n\n")}, "train.conll", "ner"},
	{"conllu", map[string]string{
		"a.conllu": lines("1\tmail\t_\tNOUN\t_\t_\t0\t_\t_\t_\n2\t%[2]s%[1]d\t_\tADJ\t_\t_\t1\t_\t_\t_\n\n"),
	}, "a.conllu", "tagging"},
	{"entities", map[string]string{
		"a.jsonl": lines(`{"text": "so it is %d", "entities": [{"start": 3, "end": 5, "label": "%s"}]}` + "\n"),
	}, "a.jsonl", "ner"},
	{"SQuAD", map[string]string{"a.json": `{"data": [` + lines(`{"title": "%[1]d", "paragraphs": [{"context": `+
		`"It is %[2]s today.", "qas": [{"id": "%[1]d", "question": "What is it?", "answers": [{"text": "%[2]s", `+
		`"answer_start": 6}]}, {"id": "x%[1]d", "question": "Why?", "answers": []}]}]},`) +
		`{"title": "last", "paragraphs": []}]}`}, "a.json", "question_answering"},
	{"pairs with a label", map[string]string{
		"a.csv": "premise,hypothesis,gold\n" + lines("it is so %d,it is not %[1]d,%s\n"),
	}, "a.csv", "classification"},
	{"pairs with a number", map[string]string{
		"a.csv": "sentence1,sentence2,score\n" + lines("it is so %d,it is not %[1]d,%[1]d.25\n"),
	}, "a.csv", "similarity"},
	{"a folder of intents and slots", map[string]string{
		"atis/train/seq.in": lines("book a flight %[1]d\n"), "atis/train/seq.out": lines("O O O B-%[2]s\n"),
		"atis/train/label": lines("%[2]s\n"),
	}, "atis", "classification ner"},
	{"texts alone", map[string]string{"a.txt": lines("this is mail %d of %s letters\n")}, "a.txt", "mlm"},
}

func TestInitWritesExperimentsThatTrain(t *testing.T) {
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	for _, sample := range initSamples {
		t.Run(sample.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range sample.files {
				writeFile(t, filepath.Dir(name), filepath.Base(name), text)
			}
			status, out, log := call("", append([]string{"init"}, strings.Fields(sample.args)...)...)
			if status != 0 || !strings.HasPrefix(out, "wrote experiment.yaml with ") {
				t.Fatalf("init: %d\n%s%s", status, out, log)
			}
			e, err := config.Read(t.Context(), "experiment.yaml", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := typesOf(e); !slices.Equal(got, strings.Fields(sample.want)) {
				t.Errorf("tasks %v, want %s", got, sample.want)
			}
			if status, out, log := call("", "check"); status != 0 {
				t.Errorf("check: %d\n%s%s", status, out, log)
			}
			if status, out, log := call("", "train", "--set", "training.max_steps=1"); status != 0 {
				t.Errorf("train: %d\n%s%s", status, out, log)
			}
		})
	}
}

func TestInitQuotesTheNameOfItsFile(t *testing.T) {
	for name, want := range map[string]string{"a.yaml": "a.yaml", "new/mails-2.yaml": "new/mails-2.yaml",
		"my mails.yaml": "'my mails.yaml'", "it's.yaml": `'it'\''s.yaml'`, "a$b.yaml": "'a$b.yaml'"} {
		if got := shellWord(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

// typesOf lists the types of an experiment's tasks.
func typesOf(e *config.Experiment) []string {
	var types []string
	for _, task := range e.Tasks {
		types = append(types, task.Part.Type)
	}
	return types
}

func TestInitReplacesNoFileUnlessForced(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	writeFile(t, ".", "mails.csv", initSamples[0].files["mails.csv"])
	writeFile(t, "conf", "mine.yaml", "mine")
	status, out, log := call("", "init", "mails.csv", "--out", "conf/mine.yaml")
	if status != exitMistake || out != "" || !strings.Contains(log, "conf/mine.yaml exists; --force replaces it") {
		t.Errorf("init over a file: %d, %s%s", status, out, log)
	}
	// what is wrong with the data is reported too
	_, _, log = call("", "init", "mail.csv", "no.csv", "--out", "conf/mine.yaml")
	for _, want := range []string{`mail.csv: no such file; did you mean "mails.csv"?`, "no.csv: no such file",
		"conf/mine.yaml exists; --force replaces it"} {
		if !strings.Contains(log, want) {
			t.Errorf("init of missing files over a file: %s, want %s", log, want)
		}
	}
	if status, _, log := call("", "init", "mails.csv", "--out", "conf/mine.yaml", "--force"); status != 0 {
		t.Errorf("init --force: %d, %s", status, log)
	}
	if status, out, log := call("", "check", "conf/mine.yaml"); status != 0 {
		t.Errorf("check of the file in a folder: %d, %s%s", status, out, log)
	}

	if status, _, log := call("", "init", "mails.csv", "--out", "no/e.yaml"); status != exitMistake ||
		!strings.Contains(log, "--out no/e.yaml: there is no folder no; make it first, by mkdir") {
		t.Errorf("init in no folder: %d, %s", status, log)
	}

	// - prints the file that would be written, and writes none
	status, out, _ = call("", "init", "mails.csv", "--out", "-")
	if _, err := os.Stat("experiment.yaml"); status != 0 || err == nil || !strings.Contains(out, "path: mails.csv\n") {
		t.Errorf("init --out -: %d, %v, %s", status, err, out)
	}
	for args, want := range map[string]string{
		"init": "an argument is missing", "init mails.csv --out=": "--out is empty",
		"init mails.csv -o conf --force": "--out conf is a folder; want a file, as conf",
	} {
		if status, _, log := call("", strings.Fields(args)...); status != exitUsage || !strings.Contains(log, want) {
			t.Errorf("%s: %d, %s, want %s", args, status, log, want)
		}
	}
}

func TestInitNamesABaseModelOfThisMachine(t *testing.T) {
	dir := shared.Dir(t)
	t.Chdir(t.TempDir())
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	writeFile(t, ".", "mails.csv", initSamples[0].files["mails.csv"])
	if status, out, log := call("", "init", "mails.csv"); status != 0 {
		t.Fatalf("init: %d, %s%s", status, out, log)
	}
	e, err := config.Read(t.Context(), "experiment.yaml", nil)
	if err != nil || filepath.Base(e.Model.BaseModel.Name) != "distil-l6" { // the smaller file of the two
		t.Errorf("base model %q, %v; want distil-l6", e.Model.BaseModel.Name, err)
	}
}

// TestInitGuessesThePublicCorpora compares the guesses with the experiments that ship.
func TestInitGuessesThePublicCorpora(t *testing.T) {
	dir := shared.Dir(t)
	t.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	shipped, err := filepath.Abs("../../experiments")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	experiments := map[string][]string{"xquad_en": {"xquad"}, "sst": {"sst", "sst"}, "stsb": {"similarity"}}
	t.Chdir(t.TempDir())
	for _, folder := range folders {
		name := folder.Name()
		data := filepath.Join(dir, "data", name)
		if name == "mlm_text" { // archives
			status, _, log := call("", "init", data, "--force")
			if status != exitMistake || !strings.Contains(log, "no data in") {
				t.Errorf("init of archives: %d, %s", status, log)
			}
			continue
		}
		if status, out, log := call("", "init", data, "--force"); status != 0 {
			t.Errorf("init %s: %d\n%s%s", name, status, out, log)
			continue
		}
		e, err := config.Read(t.Context(), "experiment.yaml", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		files := experiments[name]
		if files == nil {
			files = []string{name}
		}
		var want []string
		for _, file := range files {
			reference, err := config.Read(t.Context(), filepath.Join(shipped, file+".yaml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, typesOf(reference)...)
		}
		for i, kind := range want {
			want[i] = strings.Replace(kind, "sentiment", "classification", 1) // one of another name
		}
		got := typesOf(e)
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: tasks %v, want %v as in %v.yaml", name, got, want, files)
		}
		if shared.Long() {
			one := strings.Fields("check --set training.max_steps=1 --set training.batch_size=2") // it measures steps
			if status, out, log := call("", one...); status != 0 {
				t.Errorf("check of %s: %d\n%s%s", name, status, out, log)
			}
		}
	}
}

// init prints its doubts, too: who runs it may not read the file that it writes.
func TestInitReportsItsDoubts(t *testing.T) {
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct{ text, want string }{
		"one.csv": {"text\nhello my good world\n",
			`one.csv: task "one": no column holds labels: masked tokens are predicted`},
		"suffix.conll": {strings.Repeat("Ada\tPER-B\nByron\tPER-I\nsaw\tO\nRome\tLOC-B\n\n", 9),
			`suffix.conll: task "suffix": tags such as "LOC-B" mark spans in a form that type: ner does not read, ` +
				"and are learned word by word: its letter is after the label: write B-LOC"},
		"brackets.conll": {strings.Repeat("Ada\t(PER*\nByron\t*)\nsaw\t*\nRome\t(LOC)\n\n", 9),
			`brackets.conll: task "brackets": tags such as "(LOC)" mark spans in a form that type: ner does not ` +
				"read, and are learned word by word: it is of CoNLL-2012's form, in brackets: write (X* and (X) " +
				"as B-X, * and *) within X as I-X, else * as O"},
		"slip.conll": {strings.Repeat("Ada\tB-PER\nByron\tI-PER\nsaw\tO\n\n", 9) + "Rome\tLOC\n",
			`slip.conll: task "slip": tags such as "LOC" are neither O nor of spans, as nearly all others are: ` +
				"jenga check names their lines; type: tagging would learn them"},
		"lengths.jsonl": {strings.Repeat(`{"tokens": ["Ada", "saw"], "tags": ["B-PER", "O"]}`+"\n", 9) +
			`{"tokens": ["so", "it", "is"], "tags": ["O", "O"]}`,
			`lengths.jsonl: task "lengths": the tags of 1 of 10 records are not as many as the words: jenga check ` +
				"names their lines"},
		"predicted.json": {`[{"data": {"text": "so it is"}, "annotations": [], "predictions": [{"result": []}]}]`,
			"predicted.json: the tasks of Label Studio have predictions and no annotations, of which alone labels " +
				"are read; submit these predictions there\n" +
				`warning: predicted.json: task "predicted": no column holds labels: masked tokens are predicted`},
		"splits.json": {`{"train": [` + strings.Repeat(`{"text": "so it is", "label": "a"}, `, 9) +
			`{"text": "so it was", "label": "b"}], "val": [{"text": "it is", "label": "a"}]}`,
			"splits.json: not read is val, a list beside it: where records of dev or test are in it, write each " +
				"list to a file of its own, which dev or test names"},
		"lines.txt":  {"hello my good world\nso it is\nit was so\n", ""},
		"tags.conll": {strings.Repeat("Ada\tNN-B\nByron\tVB\nsaw\tO\n\n", 9), ""},
	} {
		writeFile(t, ".", name, test.text)
		status, out, log := call("", "init", name, "--out", name+".yaml")
		if test.want != "" {
			test.want = "warning: " + test.want + "\n"
		}
		if status != 0 || log != test.want || !strings.HasPrefix(out, "wrote ") {
			t.Errorf("%s: %d, %s%s, want\n%s", name, status, out, log, test.want)
		}
	}
}
