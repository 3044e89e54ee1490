package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// call runs a command in the working directory.
func call(in string, args ...string) (status int, out, log string) {
	var o, l bytes.Buffer
	status = Run(args, strings.NewReader(in), &o, &l)
	return status, o.String(), l.String()
}

func TestExitStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "broken.yaml", "model: {base_modl: x}\n")
	for _, test := range []struct {
		args   string
		status int
		want   string // in out or log
	}{
		{"", 0, "experiments/quickstart.yaml"},
		{"--help", 0, "jenga train"},
		{"version", 0, "jenga "},
		{"train --help", 0, "--set training.num_epochs=1"},
		{"parts", 0, "head linear"},
		{"parts head linear", 0, "dropout"},
		{"parts heads", 0, "head mlp"},
		{"parts section model", 0, "lora.targets"},
		{"parts section task", 0, "stride"},
		{"train --no-such-flag", exitUsage, "--help"},
		{"frain", exitUsage, "train"},
		{"train a b", exitUsage, `jenga train: unexpected argument "b"; usage: jenga train [FILE]`},
		{"eval", exitUsage, "jenga eval: an argument is missing; usage: jenga eval RUN"},
		{"eval x --split tst", exitUsage, `--split "tst": want one of train, dev, test`},
		{"eval x --data intent", exitUsage, `--data "intent": want TASK=FILE`},
		{"embed x --pool max", exitUsage, `--pool "max": want one of mean, cls, none`},
		{"embed x --precision int4", exitUsage, `--precision "int4": want one of float32, bf16, int8`},
		{"predict x --precision int4", exitUsage, `--precision "int4": want one of float32, bf16, int8`},
		{"version --threads -1", exitUsage, "--threads -1: want a number from 1 on"},
		{"train nowhere.yaml", exitMistake, "nowhere.yaml: no such file"},
		{"check broken.yaml", exitMistake, `"base_model"`},
		{"parts heat", exitUsage, `did you mean "head"`},
		{"parts head liner", exitUsage, `did you mean "linear"`},
		{"eval nowhere", exitMistake, "nowhere: no such folder"},
		{"predict .", exitMistake, "no run"},
		{"tokenize nowhere", exitMistake, "nowhere"},
		{"embed nowhere", exitMistake, "nowhere"},
		{"eval x --data a=b.csv --data a=b.csv", exitUsage, `--data "a=b.csv": it is named twice; want it once`},
		{"embed . --max-length 2", exitUsage, "at least 3 tokens"},
		{"embed broken.yaml", exitMistake, "broken.yaml is a file; want a folder, or an .onnx file"},
		{"embed . --max-length -1", exitUsage, "--max-length -1"},
		{"tokenize . --max-length -1", exitUsage, "--max-length -1"},
		{"tokenize --help", 0, "Unicode code points"},
		{"predict --help", 0, "Unicode code points"},
		{"tokenize . --offsets runes", exitUsage, `--offsets "runes": want one of characters, bytes, utf16`},
		{"predict . --top -1", exitUsage, "--top -1: want a number from 1 on"},
		{"predict . --offsets runes", exitUsage, `--offsets "runes": want one of characters, bytes, utf16`},
	} {
		t.Run(test.args, func(t *testing.T) {
			status, out, log := call("", strings.Fields(test.args)...)
			if status != test.status {
				t.Errorf("status %d, want %d\n%s%s", status, test.status, out, log)
			}
			if !strings.Contains(out+log, test.want) {
				t.Errorf("%q not found in\n%s%s", test.want, out, log)
			}
			if status != 0 && out != "" {
				t.Errorf("the error is written to stdout: %s", out)
			}
		})
	}
}

// smallExperiment trains on the CSV of mails.
const smallExperiment = `
project_name: mails
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - name: team
    type: classification
    data: {path: mails.csv, text: body, split: {dev: 0.2}, label: team}
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 20}
`

func TestTrainEvalPredictEmbedTokenize(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	status, out, log := call("", "check")
	const counts = "\nteam  team  one label  train  32        32        2\n" +
		"team  team  one label  dev    8         8         2\n"
	if status != 0 || !strings.Contains(out, counts) {
		t.Fatalf("check: %d\n%s%s", status, out, log)
	}

	// events as JSON lines, and the same in the run folder
	status, out, log = call("", "train", "--json")
	if status != 0 {
		t.Fatalf("train: %d\n%s%s", status, out, log)
	}
	events := map[string]int{}
	for line := range strings.Lines(out) {
		var event struct{ Event string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events[event.Event]++
	}
	if events["step"] != 80 || events["eval"] != 20 || events["done"] != 1 {
		t.Errorf("events %v, want 80 steps, 20 evaluations, 1 done", events)
	}
	if _, err := os.Stat("runs/mails/metrics.jsonl"); err != nil {
		t.Error(err)
	}
	if status, _, log := call("", "train"); status != exitMistake || !strings.Contains(log, "--force") {
		t.Errorf("training over a run: %d, %s", status, log)
	}

	status, out, log = call("", "eval", "runs/mails", "--json")
	if status != 0 || !strings.HasPrefix(out, `{"split":"dev","tasks":{"team":{"heads":{"team":{"accuracy":1`) {
		t.Errorf("eval: %d\n%s%s", status, out, log)
	}
	if status, out, log = call("", "eval", "runs/mails", "--split", "test"); status != exitMistake ||
		!strings.Contains(log, "no test data") {
		t.Errorf("eval without data: %d\n%s%s", status, out, log)
	}
	if status, out, log = call("", "eval", "runs/mails", "--data", "team=mails.csv"); status != 0 ||
		!strings.HasPrefix(out, "mails.csv:\ntask") || !strings.Contains(out, "team  team  40") {
		t.Errorf("eval of a file: %d\n%s%s", status, out, log)
	}
	if status, out, log = call("", "eval", "runs/mails", "--data", "team=mails.csv", "--json"); status != 0 ||
		!strings.HasPrefix(out, `{"split":"mails.csv","tasks":`) {
		t.Errorf("eval of a file: %d\n%s%s", status, out, log)
	}

	// several files
	for _, part := range []string{"x1.csv", "x2.csv"} {
		writeFile(t, ".", part, mails())
	}
	for args, want := range map[string]string{
		"team=x*.csv":                      "x*.csv:\ntask  head  examples  loss    metrics in %\nteam  team  80 ",
		"team=x1.csv --data team=x2.csv":   "x1.csv, x2.csv:\n",
		"team=x?.csv --data team=x1.csv":   "duplicate file x1.csv",
		"team=y*.csv":                      `--data team: "y*.csv" matches no file; . has `,
		"team=x1.csv --data team=gone.csv": "gone.csv: no such file; --data is TASK=FILE, once for each",
	} {
		_, out, log := call("", append([]string{"eval", "runs/mails", "--data"}, strings.Fields(args)...)...)
		if !strings.Contains(out+log, want) {
			t.Errorf("eval --data %s: %s%s, want %s", args, out, log, want)
		}
	}

	// the output has an error in place of a bad line
	status, out, _ = call("the card was charged twice\n{\"text\": \n\n{\"text\": \"the button hangs\"}\n", "predict",
		"runs/mails")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != exitMistake || len(lines) != 3 || !strings.HasPrefix(lines[1], `{"error":"line 2: `) ||
		!strings.Contains(lines[0], `"label":"billing"`) || !strings.Contains(lines[2], `"label":"support"`) {
		t.Errorf("predict: %d\n%s", status, out)
	}

	status, out, _ = call("the card\n", "embed", "runs/mails", "--pool", "none")
	var embedded embedLine
	if err := json.Unmarshal([]byte(out), &embedded); err != nil || status != 0 ||
		len(embedded.States) != len(embedded.IDs) || len(embedded.States[0]) != 16 {
		t.Errorf("embed: %d, %v\n%s", status, err, out)
	}
	status, out, _ = call("the card\n", "tokenize", filepath.Join("runs", "mails"))
	var tokenized tokenizeLine
	if err := json.Unmarshal([]byte(out), &tokenized); err != nil || status != 0 || tokenized.Tokens[0] != "[CLS]" ||
		tokenized.Offsets[0] != [2]int{0, 0} || tokenized.Offsets[1] != [2]int{0, 3} {
		t.Errorf("tokenize: %d, %v\n%s", status, err, out)
	}

	for unit, want := range map[string]string{
		"characters": "[0,3],[4,5],[6,10]", "bytes": "[0,3],[4,8],[9,13]", "utf16": "[0,3],[4,6],[7,11]",
	} {
		status, out, _ = call("the 😀 card\n", "tokenize", "runs/mails", "--offsets", unit)
		if want := `"offsets":[[0,0],` + want + `,[0,0]]`; status != 0 || !strings.Contains(out, want) {
			t.Errorf("tokenize --offsets %s: %d, %s, want %s", unit, status, out, want)
		}
	}

	// a run whose data is gone
	if err := os.Remove("mails.csv"); err != nil {
		t.Fatal(err)
	}
	want := "mails.csv: no such file; pass the data with --data team=FILE\n"
	if status, _, log = call("", "eval", "runs/mails"); status != exitMistake || !strings.HasSuffix(log, want) {
		t.Errorf("eval of a run whose data is gone: %d\n%s", status, log)
	}
}

func TestEvaluationsReportEachLabelAndTheFusion(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=2", "--set", "model.fusion=mix"); status != 0 {
		t.Fatal(log)
	}
	type evaluation struct {
		Event string
		Tasks map[string]struct {
			Heads map[string]struct {
				Accuracy float64
				Labels   map[string]struct {
					Precision, Recall, F1, Support *float64
					Predicted                      int
				}
				Confusion map[string]map[string]int
			}
		}
		Fusion map[string][]float64
	}
	check := func(line []byte) (e evaluation) {
		t.Helper()
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Event != "" && e.Event != "eval" {
			return e
		}
		head, labelled, right := e.Tasks["team"].Heads["team"], 0, 0
		for label, row := range head.Confusion {
			support := 0
			for _, n := range row {
				support += n
			}
			if s := head.Labels[label]; (s.Precision == nil) != (s.Predicted == 0) || s.Recall == nil || s.F1 == nil ||
				s.Support == nil || int(*s.Support) != support {
				t.Errorf("label %s has %+v, and %d in its row of the confusion matrix: %s", label, s, support, line)
			}
			labelled, right = labelled+support, right+row[label]
		}
		if labelled != 8 || float64(right)/8 != head.Accuracy { // of dev
			t.Errorf("%d of %d are right, the accuracy is %v: %s", right, labelled, head.Accuracy, line)
		}
		return e
	}

	status, out, log := call("", "eval", "runs/mails", "--json")
	if status != 0 {
		t.Fatal(log)
	}
	check([]byte(out))
	metrics, err := os.ReadFile("runs/mails/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	evaluations := 0
	for line := range bytes.Lines(metrics) {
		e := check(line)
		if e.Event != "eval" {
			continue
		}
		evaluations++
		weights := e.Fusion["team"] // of the embeddings and the one layer
		if len(weights) != 2 || !(math.Abs(weights[0]+weights[1]-1) <= 1e-5) {
			t.Errorf("the mix has the weights %v, want two that sum to 1: %s", weights, line)
		}
	}
	if evaluations != 2 {
		t.Errorf("%d evaluations in metrics.jsonl, want 2:\n%s", evaluations, metrics)
	}
}

// fullDisk is a writer whose writes fail.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestResultsThatCannotBeWrittenAreAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	for _, args := range []string{"version", "parts", "check", "eval runs/mails", "eval runs/mails --json",
		"predict runs/mails", "embed runs/mails", "tokenize runs/mails", "train --force --json"} {
		var log bytes.Buffer
		status := Run(strings.Fields(args), strings.NewReader("the card\n"), fullDisk{}, &log)
		if status != exitMistake || !strings.Contains(log.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%s: status %d, want %d\n%s", args, status, exitMistake, &log)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string // in out or log
	}{
		{"--version", 0, "jenga " + checkpoint.Version + " "},
		{"version --threads 1", 0, "jenga "},
		{"version --threads 0", exitUsage, "--threads 0: want a number from 1 on; without the flag all cores"},
		{"version --threads two", exitUsage, "--threads \"two\": want a whole number\n"},
		{"merge a b --scale x", exitUsage, "--scale \"x\": want a number\n"},
		{"merge a b --seed -1", exitUsage, "--seed \"-1\": want a whole number of at least 0\n"},
		{"merge a b --weight 1,x", exitUsage, "--weight \"1,x\": want numbers with commas between them, as 1,0.5\n"},
		{"eval x --json=yes", exitUsage, "--json \"yes\": want true or false\n"},
		{"train --epochs 3", exitUsage, `jenga train: no flag "--epochs"; want --set training.num_epochs=VALUE`},
		{"train --num-train-epochs 3", exitUsage, `"--num-train-epochs"; want --set training.num_epochs=VALUE`},
		{"train --batch-size 3", exitUsage, `"--batch-size"; want --set training.batch_size=VALUE`},
		{"train --seed 3", exitUsage, `no flag "--seed"; want --set seed=VALUE`},
		{"train --project-name x", exitUsage, `no flag "--project-name"; want --set project_name=VALUE`},
		{"train --run-name x", exitUsage, `no flag "--run-name"; want --set project_name=VALUE`},
		{"train --model x", exitUsage, `no flag "--model"; want --set model.base_model=MODEL`},
		{"train --training x", exitUsage, `no flag "--training"; `},
		{"train --text-column x", exitUsage, `no flag "--text-column"; available: `}, // of which task?
		{"train --tasks 3", exitUsage, `no flag "--tasks"; available: `},
		{"serve x --port 9000", exitUsage, `jenga serve: no flag "--port"; want --listen 127.0.0.1:PORT`},
		{"eval x --epochs 3", exitUsage, `jenga eval: no flag "--epochs"; available: --against`},
		{"eval x --splt test", exitUsage, `jenga eval: no flag "--splt"; did you mean "--split"? available: `},
		{"train --sett x", exitUsage, `did you mean "--set"?`},
		{"train --set num_epochs", exitUsage, "--set num_epochs: want KEY=VALUE, as training.num_epochs=1\n"},
		{"check x.yaml --set =3", exitUsage, "--set =3: want KEY=VALUE, as training.num_epochs=1\n"},
		{"errors x --out no/x.csv", exitMistake, "--out no/x.csv: no such folder no; make it, or name another\n"},
		{"errors x --out .", exitUsage, "--out .: it is a folder; want the name of a file\n"},
		{"train -x", exitUsage, "jenga train --help lists the flags\n"},
	} {
		status, out, log := call("", strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(out+log, test.want) {
			t.Errorf("%s: status %d, want %d and %q in\n%s%s", test.args, status, test.status, test.want, out, log)
		}
	}
}

func TestTheFlagAndTheCommandPrintTheSameVersion(t *testing.T) {
	_, flag, _ := call("", "--version")
	if _, command, _ := call("", "version"); flag != command {
		t.Errorf("--version prints %q, the command %q", flag, command)
	}
}

func TestCompletion(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"bash", 0, "__jenga_debug"},
		{"zsh", 0, "#compdef jenga"},
		{"fish", 0, "complete -c jenga"},
		{"powershell", 0, "Register-ArgumentCompleter"},
		{"--help", 0, "source <(jenga completion bash)"},
		{"sh", exitUsage, "available: bash, fish, powershell, zsh\n"},
		{"", exitUsage, "jenga completion: an argument is missing; usage: jenga completion SHELL\n"},
	} {
		status, out, log := call("", append([]string{"completion"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(out+log, test.want) {
			t.Errorf("%s: status %d, want %d and %q in\n%s%s", test.args, status, test.status, test.want, out, log)
		}
	}

	// what the scripts call
	if _, out, _ := call("", "__complete", "eval", "x", "--sp"); !strings.HasPrefix(out, "--split\t") {
		t.Errorf("--sp is completed to %q", out)
	}
}

func TestErrorsSayWhatWouldWork(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "untrained", "experiment.yaml", smallExperiment)
	writeFile(t, "own", "experiment.yaml", smallExperiment)
	for _, run := range []string{"own/runs/mails", "all/a", "all/b", "all/c", "all/d"} {
		writeFile(t, run, "experiment.yaml", smallExperiment)
		writeFile(t, run, "metrics.jsonl", "")
	}
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"train"}, exitMistake,
			"experiment.yaml: no such file; name a file, or try jenga train experiments/quickstart.yaml\n"},
		{[]string{"train", ""}, exitMistake,
			"the name of the experiment file is empty; want a file such as experiment.yaml\n"},
		{[]string{"train", "untrained"}, exitMistake,
			"untrained is a folder; want an experiment file, such as untrained/experiment.yaml\n"},
		{[]string{"help", "trian"}, exitUsage, `no command "trian"; did you mean "train"? available: bench, ` +
			"calibrate, check, completion, distil, embed, errors, eval, explain, init, lr-find, merge, parts, " +
			"predict, pull, quantize, schema, serve, tasks, tokenize, train, version\n"},
		{[]string{"predict", "untrained"}, exitMistake,
			"no best/ or last/ in untrained; train the experiment first\n"},
		{[]string{"predict", "own"}, exitMistake,
			"own: no run, but the folder of an experiment; want one of the runs in it: own/runs/mails\n"},
		{[]string{"eval", "own/runs"}, exitMistake, "own/runs: no run; want one of the runs in it: own/runs/mails\n"},
		{[]string{"serve", "all"}, exitMistake,
			"all: no run; want one of the runs in it: all/a, all/b, all/c and 1 more\n"},
		{[]string{"train", "--resume", "own/runs"}, exitMistake, "own/runs: no run to resume: the folder has no " +
			"experiment.yaml; want one of the runs in it: own/runs/mails\n"},
	} {
		status, out, log := call("", test.args...)
		if status != test.status || out != "" || log != test.want {
			t.Errorf("%q: status %d, %s%s\nwant %d, %s", test.args, status, out, log, test.status, test.want)
		}
	}
}

// The page of commands has a section for each, which is their help.
func TestEachCommandIsOnThePage(t *testing.T) {
	for _, cmd := range (&commands{}).root().Commands() {
		if cmd.Long == "" || cmd.Example == "" && cmd.Name() != "version" || strings.Contains(cmd.Long, "```") {
			t.Errorf("%s: %q, %q, want a text and examples", cmd.Name(), cmd.Long, cmd.Example)
		}
		for _, size := range bench.SizeNames() {
			if cmd.Name() == "bench" && !strings.Contains(cmd.Long, size) {
				t.Errorf("bench does not name the size %s", size)
			}
		}
	}
}

// The bytes of a training depend on the kernels, so that a report of a difference needs their name.
func TestTheVersionNamesTheKernelsInUse(t *testing.T) {
	status, out, log := call("", "version")
	if want := ", " + kernel.Name() + " kernels\n"; status != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("version: %d, %s%s, want %q at its end", status, out, log, want)
	}
}

// mappedFiles returns the lines of this process's memory map that name files below a folder, on Linux.
func mappedFiles(t *testing.T, folder string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("this system does not list mapped files: %v", err)
	}
	var below []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, folder) {
			below = append(below, line)
		}
	}
	return below
}

// A program that runs commands one after the other keeps no file of a run open.
func TestCommandsUnmapTheFilesOfARun(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	for _, command := range []string{"eval runs/mails", "predict runs/mails", "embed runs/mails"} {
		if status, _, log := call("the card\n", strings.Fields(command)...); status != 0 {
			t.Fatal(log)
		}
		if left := mappedFiles(t, folder); len(left) > 0 {
			t.Errorf("after %s these files are mapped:\n%s", command, strings.Join(left, ""))
		}
	}
}

// README.md, docs/commands.md and --help have all commands.
func TestThePagesListEveryCommand(t *testing.T) {
	readme := readFile(t, filepath.Join("..", "..", "README.md"))
	for _, cmd := range (&commands{}).root().Commands() {
		if cmd.Name() == "help" || cmd.Hidden {
			continue
		}
		if !strings.Contains(readme, "`jenga "+cmd.Name()+"`") && !strings.Contains(readme, "`jenga "+cmd.Name()+" ") {
			t.Errorf("README.md does not list jenga %s", cmd.Name())
		}
		if cmd.Long == "" {
			t.Errorf("docs/commands.md does not describe jenga %s", cmd.Name())
		}
	}
}

var (
	shellBlock = regexp.MustCompile("(?ms)^```(?:sh|console)\n(.*?)^```$")
	invocation = regexp.MustCompile(`(?:^|[ (])(?:\./)?jenga ((?:'[^']*'|"[^"]*"|[^|<>#)'"\n])*)`)
	shellToken = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// Every jenga command of every page has flags and arguments that the command takes, those of illustrations, too, which
// scripts/blocks.sh does not run.
func TestCommandsOfPagesParse(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	parsed := 0
	for _, page := range append(pages, "../../README.md") {
		for _, block := range shellBlock.FindAllStringSubmatch(readFile(t, page), -1) {
			console := strings.Contains(block[1], "$ ")
			for line := range strings.SplitSeq(block[1], "\n") {
				line, prompted := strings.CutPrefix(line, "$ ")
				found := invocation.FindStringSubmatch(line)
				if found == nil || console && !prompted || strings.Contains(line, "go build") {
					continue
				}
				var args []string
				plain := strings.NewReplacer("'", "", `"`, "", "$SLURM_ARRAY_TASK_ID", "3")
				for _, word := range shellToken.FindAllString(found[1], -1) {
					args = append(args, plain.Replace(word))
				}
				cmd, rest, err := (&commands{}).root().Find(args)
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
				parsed++
			}
		}
	}
	if parsed < 60 {
		t.Errorf("%d commands on the pages, want 60 or more", parsed)
	}
}
