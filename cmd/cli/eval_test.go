package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/predict"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestDataIsNamedByTask(t *testing.T) {
	// b and c read the same texts; d has no examples
	group := func(split string, tasks ...int) dataset.Group {
		return dataset.Group{Tasks: tasks, Examples: map[string][]*corpus.Example{split: {{}}}}
	}
	opened := &predict.Opened{Data: &dataset.Dataset{
		Experiment: &config.Experiment{Tasks: []config.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}},
		Groups:     []dataset.Group{group("dev", 0), group("dev", 1, 2), group("train", 3)},
	}}
	for _, test := range []struct {
		want  string
		files map[string][]string
	}{
		{"dev", nil},
		{"a: x.csv; others: dev", map[string][]string{"a": {"x.csv"}}},
		{"b, c: x.csv; others: dev", map[string][]string{"c": {"x.csv"}}},
		{"a: x.csv; b, c: y.csv", map[string][]string{"a": {"x.csv"}, "b": {"y.csv"}}},
		{"x.csv", map[string][]string{"a": {"x.csv"}, "b": {"x.csv"}}},
		{"a: x.csv, y.csv; others: dev", map[string][]string{"a": {"x.csv", "y.csv"}}},
	} {
		if got := dataName(opened, "dev", test.files); got != test.want {
			t.Errorf("files %v: %q, want %q", test.files, got, test.want)
		}
	}
}

func TestWarningsNameTheFileThatIsReadInPlaceOfASplit(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "odd.csv", "body,team\nthe card,sales\n")
	status, _, log := call("", "eval", "runs/mails", "--data", "team=odd.csv")
	if status != 0 || !strings.Contains(log,
		`odd.csv has 1 label that train does not have, which counts as wrong: "sales" 1 time`) {
		t.Errorf("%d, %s", status, log)
	}
}

func TestEvalAgainstARunOnTheSameTexts(t *testing.T) {
	trainMails(t)
	train := func(folder string, set ...string) {
		t.Helper()
		args := []string{"train", "--out", folder, "--set", "training.num_epochs=1"}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		if status, _, log := call("", args...); status != 0 {
			t.Fatal(log)
		}
	}
	train("slow", "training.learning_rate=1e-9")
	train("otherwise", "tasks.team.data.split.seed=7")
	train("renamed", "tasks.team.name=group")
	accuracy := func(run string) float64 {
		var line report.EvalLine
		if err := json.Unmarshal([]byte(mustCall(t, "", "eval", run, "--json")), &line); err != nil {
			t.Fatal(err)
		}
		return line.Tasks["team"].Heads["team"]["accuracy"].(float64)
	}
	here, there := accuracy("runs/mails"), accuracy("slow")

	var line report.EvalLine
	err := json.Unmarshal([]byte(mustCall(t, "", "eval", "runs/mails", "--against", "slow", "--json")), &line)
	if err != nil || line.Against == nil || line.Against.Run != "slow" || len(line.Against.Heads) != 1 ||
		*line.Against.Heads[0].Before != there || *line.Against.Heads[0].After != here {
		t.Errorf("%v: %+v, want %v and %v", err, line.Against, there, here)
	}
	out := mustCall(t, "", "eval", "runs/mails", "--against", "slow")
	want := fmt.Sprintf("\nagainst slow, on the same texts:\ntask  head  metric in %%  there  here   difference\n"+
		"team  team  accuracy     %-5.2f  %-5.2f  %+.2f\n", 100*there, 100*here, 100*(here-there))
	if !strings.HasSuffix(out, want) {
		t.Errorf("%s\nwant at its end\n%s", out, want)
	}

	for _, c := range []struct{ against, want string }{
		{"otherwise", `--against: task "team": the 8 texts of dev are not the 8 of otherwise; --data team=FILE reads ` +
			`one file for both`},
		{"renamed", `--against: no task of renamed is one of those that runs/mails is evaluated on, task "team"; ` +
			`it has task "group"; jenga tasks renamed --rename`},
		{"nowhere", "--against: nowhere: no such folder"},
	} {
		status, _, log := call("", "eval", "runs/mails", "--against", c.against)
		if status != exitMistake || !strings.Contains(log, c.want) {
			t.Errorf("%s: %d, %s\nwant %s", c.against, status, log, c.want)
		}
	}
	mustCall(t, "", "eval", "runs/mails", "--against", "otherwise", "--data", "team=mails.csv")
}

func TestALossHasSixDigitsAtMost(t *testing.T) {
	for loss, want := range map[float64]string{
		0.69314718: "0.6931", 12.5: "12.5000", 1234.56789: "1234.57", 0x1p83: "9.67141e+24", math.Inf(1): "+Inf",
	} {
		if got := lossText(loss); got != want {
			t.Errorf("loss %v: %s, want %s", loss, got, want)
		}
	}
}

// someMetrics is an evaluation of two tasks on the same examples, one of a number and one of a task without labels.
func someMetrics() []multitask.GroupMetrics {
	loss := multitask.Loss{Sum: 3, Units: 2}
	right := 0.25
	return []multitask.GroupMetrics{
		{AllRight: &right, Tasks: []multitask.TaskMetrics{
			{Task: "team", Discrete: true, Heads: []multitask.HeadMetrics{{Head: "team", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "accuracy", Value: 0.5}, {Name: "precision_macro", Value: 0.25},
					{Name: "recall_macro", Value: 1}, {Name: "f1_macro", Value: 0.125}, {Name: "mcc"}}}}},
			{Task: "things", Discrete: true, Heads: []multitask.HeadMetrics{{Head: "things", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "span_f1", Value: 0.25}}}}},
			{Task: "price", Heads: []multitask.HeadMetrics{{Head: "price", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "pearson", Value: 0.5}, {Name: "spearman", Undefined: true},
					{Name: "rmse", Value: 12.5, Lower: true}, {Name: "mae", Value: 10, Lower: true}}}}},
		}},
		{Tasks: []multitask.TaskMetrics{{Task: "mood", Heads: []multitask.HeadMetrics{{Head: "mood"}}}}},
	}
}

// All metrics and errors are in the table at each width, and no number in per cent stands with one in a unit.
func TestATableFitsItsTerminal(t *testing.T) {
	const below = "team + things: all_right 25.00\neval_overall 41.67: the mean of each head's first metric\n"
	for width, want := range map[int]string{
		140: "task    head    examples  loss    metrics in %" + strings.Repeat(" ", 64) + `errors, not in %
team    team    8         1.5000  accuracy 50.00  precision_macro 25.00  recall_macro 100.00  f1_macro 12.50
things  things  8         1.5000  span_f1 25.00
price   price   8         1.5000  pearson 50.00  spearman -` + strings.Repeat(" ", 51) + `rmse 12.5  mae 10
mood    mood    0         -       no labels
` + below,
		60: `team, team: examples 8, loss 1.5000, metrics in %
  accuracy 50.00  precision_macro 25.00  recall_macro 100.00
  f1_macro 12.50
things, things: examples 8, loss 1.5000, metrics in %
  span_f1 25.00
price, price: examples 8, loss 1.5000, metrics in %
  pearson 50.00  spearman -
 errors, not in %
  rmse 12.5  mae 10
mood, mood: examples 0, loss -, metrics in %
  no labels
` + below,
	} {
		got := metricsText(someMetrics(), width)
		if got != want {
			t.Errorf("at %d characters:\n%s\nwant\n%s", width, got, want)
		}
	}
	const all = "accuracy 50.00  precision_macro 25.00  recall_macro 100.00  f1_macro 12.50\n"
	if got := metricsText(someMetrics(), 0); !strings.Contains(got, "\nteam    team    8         1.5000  "+all) {
		t.Errorf("without a terminal:\n%s", got)
	}
	for width := 24; width < 140; width++ { // the longest item has 21 characters
		got := metricsText(someMetrics(), width)
		if n := widestOf(strings.Split(got, "\n")); n > width {
			t.Errorf("at %d characters a line has %d:\n%s", width, n, got)
		}
		for _, metric := range []string{"accuracy 50.00", "precision_macro 25.00", "recall_macro 100.00",
			"f1_macro 12.50", "span_f1 25.00", "pearson 50.00", "spearman -", "rmse 12.5", "mae 10"} {
			if !strings.Contains(got, metric) {
				t.Errorf("at %d characters the table has no %s:\n%s", width, metric, got)
			}
		}
	}
}

func TestAllRightLeavesOutTasksOfNumbers(t *testing.T) {
	if text := metricsText(someMetrics(), 0); !strings.Contains(text, "\nteam + things: all_right") {
		t.Errorf("all_right includes the task of a number:\n%s", text)
	}
}

func TestATableWithoutLabelsHasNoMean(t *testing.T) {
	if text := metricsText(someMetrics()[1:], 0); strings.Contains(text, "eval_overall") {
		t.Errorf("a mean of no metrics:\n%s", text)
	}
}

func TestWriteLabels(t *testing.T) {
	tables := tasks.Tables{
		Labels: map[string]tasks.LabelMetrics{"good": {Precision: 0.5, Recall: 1, F1: 2. / 3, Support: 4,
			Predicted: 8}, "bad": {Support: 9}, "fine": {Predicted: 2}},
		Confusion: map[string]map[string]int{"good": {"good": 4}, "bad": {"good": 4, "a": 1, "b": 3, "c": 1}},
	}
	groups := []multitask.GroupMetrics{{Tasks: []multitask.TaskMetrics{{Task: "mood",
		Heads: []multitask.HeadMetrics{{Head: "tone", Tables: &tables}, {Head: "amount"}}}}}}
	var out strings.Builder
	if err := writeLabels(&out, groups); err != nil {
		t.Fatal(err)
	}
	want := `
mood, tone
label  precision  recall  f1     support  confused with
bad    -          0.00    0.00   9        good 4, b 3, a 1
fine   0.00       -       0.00   0
good   50.00      100.00  66.67  4
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPrecisionOfACommand(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	texts := strings.ReplaceAll("the card is too high and a window hangs again", " ", "\n")
	if status, _, log := call("", "train", "--set", "training.num_epochs=15"); status != 0 {
		t.Fatal(log)
	}
	for _, command := range [][]string{{"predict", "runs/mails", "--top", "2"}, {"embed", "runs/mails"},
		{"eval", "runs/mails", "--json"}, {"eval", "runs/mails"}} {
		_, exact, _ := call(texts, command...)
		for _, precision := range []nn.Precision{nn.BFloat16, nn.Int8} {
			status, out, log := call(texts, append(command, "--precision", precision.String())...)
			if err := precision.Check(); err != nil {
				want := "--precision " + precision.String() + ": " + err.Error()
				if !strings.Contains(log, want) || status != exitMistake {
					t.Errorf("%v: status %d, want %d and %s\n%s", command, status, exitMistake, want, log)
				}
				continue
			}
			if status != 0 || out == exact {
				t.Errorf("%v in %v: status %d, and the output of float32\n%s%s", command, precision, status, out, log)
			}
			if command[0] == "eval" && !strings.Contains(out, precision.String()) {
				t.Errorf("%v in %v: the output does not say so\n%s", command, precision, out)
			}
		}
	}
}

// Labels are the data's: in a table they move no cursor, begin no line and no column.
func TestTablesShowLabelsAsData(t *testing.T) {
	for label, want := range map[string]string{
		"\x1b[2Jx": `"\x1b[2Jx"`, "a\nb": `"a\nb"`, "a\tb": `"a\tb"`, "\u202eabc": `"\u202eabc"`, "\x07": `"\a"`,
		"a\rb": `"a\rb"`, "\xff": `"\xff"`, "\u009b2J": `"\u009b2J"`, "naïve 中": "naïve 中", `"`: `"`,
	} {
		got := aligned([][]string{{"label", "f1"}, {label, "1.00"}})
		lines := strings.Split(got, "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], want+gap) || !strings.HasSuffix(lines[1], "1.00") {
			t.Errorf("%q: %q, want %s", label, got, want)
		}
	}
}

// Whatever labels, texts, columns and names of files hold, a command sends no character to a terminal that this obeys.
func TestNoCommandWritesWhatATerminalObeys(t *testing.T) {
	t.Chdir(t.TempDir())
	evil := []string{"\x1b[31mred", "\u009b31mred", "\u202egnirts", "\x7fdel", "\x1b]0;owned\a"}
	var data strings.Builder
	for i := range 60 {
		line, err := json.Marshal(map[string]any{"text": fmt.Sprint("note ", i%7, " ", evil[i%5]),
			"label": evil[i%5], "\u009b2Jcolumn": evil[i%5]})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&data, "%s\n", line)
	}
	const name = "\x1b[32mmails\u009b.jsonl"
	writeFile(t, ".", name, data.String())
	experiment := func(key, label string) string {
		return strings.NewReplacer("mails.csv", strconv.Quote(name), "text: body", "text: text", "label: team",
			key+": "+strconv.Quote(label)).Replace(smallExperiment)
	}
	writeFile(t, ".", "experiment.yaml", experiment("label", "label"))
	writeFile(t, ".", "wrong.yaml", experiment("label", "lable"))
	writeFile(t, ".", "\x1b[33m.yaml", "tasks: [")
	writeFile(t, ".", "broken.csv", "text,label\n\"\x1b[2J\" x,\u009bb\n")

	for _, c := range []struct {
		args   string
		status int
	}{
		{"check", 0}, {"train", 0}, {"eval runs/mails --labels", 0}, {"eval runs/mails --json", 0},
		{"predict runs/mails FILE --top 3", 0}, {"predict runs/mails FILE --keep all", 0},
		{"explain runs/mails -", 0}, {"explain runs/mails a\u009bnote", 0}, {"explain runs/mails note --json", 0},
		{"calibrate runs/mails", 0}, {"tasks runs/mails", 0}, {"init FILE -o -", 0}, {"tokenize runs/mails FILE", 0},
		{"check wrong.yaml", 1}, {"check \x1b[33m.yaml", 1}, {"check \u009b.yaml", 1},
		{"predict runs/mails broken.csv", 1}, {"init broken.csv -o -", 0},
		{"predict \u009b31m note", 1}, {"\x1b[31m", 2}, {"eval --\u009b31m", 2},
	} {
		args := strings.Fields(c.args)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "FILE", name)
		}
		status, out, log := call(data.String(), args...)
		if status != c.status {
			t.Errorf("%q: status %d, want %d: %s", c.args, status, c.status, log)
		}
		if at := strings.IndexFunc(out+log, isObeyed); at >= 0 {
			t.Errorf("%q writes a character that terminals obey: %q", c.args, (out + log)[max(0, at-80):][:100])
		}
	}
}

// isObeyed reports whether a character is a control but for tab and line end, or sets the direction of what follows.
func isObeyed(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e
}

// writeNames writes exp.yaml, of a tagger of names, one of three words, beside texts of names alone.
func writeNames(t *testing.T) {
	t.Helper()
	var words, lists strings.Builder
	names := []string{"anna", "bert", "carla"}
	for i := range 60 {
		name, tags, texts := names[i%3], []string{"O", "O", "O"}, []string{"so", "it", "is"}
		tags[i%3], texts[i%3] = "B-name", name
		fmt.Fprintf(&words, `{"words": ["%s"], "tags": ["%s"]}`+"\n", strings.Join(texts, `", "`),
			strings.Join(tags, `", "`))
		fmt.Fprintf(&lists, `{"text": "%s %s %s", "label": "%d"}`+"\n", name, names[i/3%3], names[i/9%3], i%2)
	}
	sample.Tasks(t, `  - {name: names, type: ner, data: {train: words.jsonl, dev: words.jsonl}}
  - {name: lists, type: classification, data: {train: lists.jsonl, dev: lists.jsonl}}
training: {learning_rate: 0.02, batch_size: 8, num_epochs: 4}
`, map[string]string{"words.jsonl": words.String(), "lists.jsonl": lists.String()})
}

func TestEvalOfOtherTexts(t *testing.T) {
	writeNames(t)
	const warned = `warning: task "names": head "names" predicts `
	must := func(args ...string) (out, log string) {
		t.Helper()
		status, out, log := call("", args...)
		if status != 0 {
			t.Fatalf("%q: %d, %s%s", args, status, out, log)
		}
		return out, log
	}
	_, log := must("train", "exp.yaml", "--out", "run")
	if strings.Count(log, warned) != 1 {
		t.Errorf("train: %s, want a warning", log)
	}

	// a table, and the same in JSON
	out, log := must("eval", "run", "--other-texts")
	for _, want := range []string{"\npredictions on texts of other tasks, at most 1000 of each group:\n",
		"\nnames  names  its own   60     ", "\nnames  names  lists     60     ", " of words in spans, far more\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwithout %q", out, want)
		}
	}
	if !strings.Contains(log, warned) {
		t.Errorf("%s, want a warning", log)
	}
	var line struct {
		Others []report.HeadRates `json:"other_texts"`
	}
	out, _ = must("eval", "run", "--other-texts", "--json")
	if err := json.Unmarshal([]byte(out), &line); err != nil || len(line.Others) != 1 ||
		len(line.Others[0].Others) != 1 || !line.Others[0].Others[0].High {
		t.Errorf("%s: %+v, %v", out, line, err)
	}

	// what is not asked for, and what there is none of
	if out, log := must("eval", "run", "--json"); strings.Contains(out, "other_texts") || log != "" {
		t.Errorf("without the flag: %s, %s", out, log)
	}
	status, _, log := call("", "eval", "run", "--other-texts", "--task", "names")
	if status != exitUsage || !strings.Contains(log, "--other-texts compares the texts of all tasks") {
		t.Errorf("%d, %s", status, log)
	}
	trainMails(t)
	if _, log := must("eval", "runs/mails", "--other-texts"); !strings.Contains(log, "all tasks read the same texts") {
		t.Errorf("one group: %s", log)
	}
}

func TestADamagedBestNamesTheLastCheckpointIfThatIsWhole(t *testing.T) {
	trainedMails(t, "--set", "training.num_epochs=2")
	best, last := filepath.Join("runs", "mails", "best"), filepath.Join("runs", "mails", "last")
	remove := func(folder string) {
		if err := os.Remove(filepath.Join(folder, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	remove(best)
	for _, command := range []string{"predict FOLDER mails.csv", "eval FOLDER", "errors FOLDER", "serve FOLDER",
		"embed FOLDER mails.csv"} {
		for _, folder := range []string{"runs/mails", best} {
			status, _, log := call("", strings.Fields(strings.Replace(command, "FOLDER", folder, 1))...)
			want := "\n" + last + ", the model that was saved last, is whole: name it in place of " + folder + "\n"
			if status != exitMistake || !strings.HasSuffix(log, want) {
				t.Errorf("%s of %s: status %d, %s", command, folder, status, log)
			}
		}
	}
	mustCall(t, "", "predict", last, "mails.csv")

	remove(last)
	for _, folder := range []string{"runs/mails", last} {
		if status, _, log := call("", "eval", folder); status != exitMistake || strings.Contains(log, "is whole") {
			t.Errorf("eval %s: status %d, %s", folder, status, log)
		}
	}
}
