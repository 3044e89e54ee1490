package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestWarningsAreWritten(t *testing.T) {
	const text = "the disk is full: states are encoded anew"
	step, warning := train.Step{Number: 1, Of: 3, Loss: 1, Tokens: 5}, train.Warning{Text: text}
	for name, events := range map[string][]train.Event{
		"before the first step": {warning, step}, "after it": {step, warning},
	} {
		var line, bar strings.Builder
		for _, w := range []*watcher{newWatcher(&line, false), newWatcher(&bar, true)} {
			for _, event := range events {
				if err := w.event(event); err != nil {
					t.Error(err)
				}
			}
		}
		for what, got := range map[string]string{"lines": line.String(), "a bar": bar.String()} {
			if strings.Count(got, "warning: "+text+"\n") != 1 {
				t.Errorf("a warning %s has no line of its own in %s:\n%s", name, what, got)
			}
		}
	}
}

// A training that was interrupted in an evaluation begins with it when it is resumed.
func TestAnEvaluationMayComeFirst(t *testing.T) {
	bad := train.Step{Number: 3, Of: 9, Bad: &multitask.BadStep{}}
	for _, event := range []train.Event{train.Evaluation{Epoch: 2}, bad} {
		for what, onBar := range map[string]bool{"lines": false, "a bar": true} {
			var log strings.Builder
			w := newWatcher(&log, onBar)
			if err := w.event(event); err != nil || log.Len() == 0 {
				t.Errorf("%s: %v, %q after %T", what, err, log.String(), event)
			}
			w.end(nil)
		}
	}
}

// The figure that selects the best checkpoint is in each evaluation's line, and printed.
func TestAnEvaluationHasTheWeightedMean(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	status, _, log := call("", "train", "--set", "training.num_epochs=2", "--set",
		"training.metric_for_best_model={team: 2}")
	if status != 0 || !strings.Contains(log, "\neval_weighted ") {
		t.Errorf("train: %d, %s", status, log)
	}
	lines, err := os.ReadFile("runs/mails/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	evaluations := 0
	for line := range strings.Lines(string(lines)) {
		var event struct {
			Event   string
			Overall map[string]float64
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if event.Event != "eval" {
			continue
		}
		evaluations++
		if value, ok := event.Overall["eval_weighted"]; !ok || value != event.Overall["eval_overall"] { // of one task
			t.Errorf("overall is %v", event.Overall)
		}
	}
	if evaluations != 2 {
		t.Errorf("%d evaluations, want 2", evaluations)
	}
}

// interrupter cancels a context when it has seen a number of events of a kind.
type interrupter struct {
	event  string
	left   int
	cancel context.CancelFunc
	last   string // what was written last
}

func (i *interrupter) Write(p []byte) (int, error) {
	i.last = string(p)
	if bytes.Contains(p, []byte(`"event":"`+i.event+`"`)) {
		if i.left--; i.left == 0 {
			i.cancel()
		}
	}
	return len(p), nil
}

func TestAnInterruptionNamesTheStepAndTheCheckpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	best, goOn := filepath.Join("runs", "mails", "best"), "; go on by jenga train --resume runs/mails"
	for i, test := range []struct {
		event string
		n     int
		want  string
	}{
		{"step", 2, "interrupted after step 2 of 80" + goOn},
		{"eval", 1, "interrupted after step 4 of 80; best so far: epoch 1 in " + best + goOn},
		{"step", 3, "interrupted after step 3 of 80; the run from before is in " + filepath.Join("runs", "mails",
			"replaced-run") + " until this one has been evaluated" + goOn},
		{"eval", 2, "interrupted after step 8 of 80; best so far: epoch "},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		out := &interrupter{event: test.event, left: test.n, cancel: cancel}
		c := &commands{out: out, log: new(strings.Builder)}
		err := c.train(ctx, trainFlags{json: true, force: true}, defaultFile)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("training %d: after %d events %s: %v, want %s", i, test.n, test.event, err, test.want)
		}
		var ended struct {
			Event      string
			Step, Of   int
			Checkpoint *string
			Resume     string
		}
		if err := json.Unmarshal([]byte(out.last), &ended); err != nil || ended.Event != "interrupted" ||
			ended.Resume != filepath.Join("runs", "mails", "last") || ended.Step == 0 || ended.Of != 80 ||
			ended.Checkpoint == nil || (*ended.Checkpoint == best) != (test.event == "eval") {
			t.Errorf("training %d: the last event is %s, %v", i, out.last, err)
		}
		cancel()
	}

	// the run says so
	const want = "runs/mails: warning: training of this run was interrupted after step 8 of 80; jenga train"
	for _, command := range []string{"eval runs/mails", "predict runs/mails", "predict runs/mails/last"} {
		status, _, log := call("the card\n", strings.Fields(command)...)
		if status != 0 || !strings.HasPrefix(log, want) {
			t.Errorf("%s: status %d, %swant %s", command, status, log, want)
		}
	}

	const unfinished = `,"unfinished":{"step":8,"of":80}}`
	if _, out, _ := call("", "eval", "runs/mails", "--json"); !strings.HasSuffix(out, unfinished+"\n") {
		t.Errorf("eval --json of a run that was interrupted: %swant %s at its end", out, unfinished)
	}

	// a training that came to its end
	if status, _, log := call("", "train", "--force", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	if status, out, log := call("", "eval", "runs/mails", "--json"); status != 0 ||
		strings.Contains(log, "training of this run") || strings.Contains(out, "unfinished") {
		t.Errorf("eval of a run that is done: status %d, %s%s", status, out, log)
	}
}

func TestTheLastEventOfATrainingThatFailsIsItsError(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	status, out, log := call("", "train", "--json")
	var last struct{ Event, Error string }
	if err := json.Unmarshal([]byte(out), &last); err != nil || status != exitMistake || last.Event != "error" ||
		last.Error+"\n" != log || !strings.Contains(log, "mails.csv: no such file") {
		t.Errorf("train without its data: %d\n%s%s", status, out, log)
	}
}

// hook is a writer that calls a function with each line.
type hook struct {
	line func(text string) error
	last string // what was written last
}

func (h *hook) Write(p []byte) (int, error) {
	h.last = string(p)
	return len(p), h.line(h.last)
}

func TestATrainingThatFailsNamesItsCheckpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	full, best := errors.New("no space left on device"), filepath.Join("runs", "mails", "best")
	for _, test := range []struct{ at, want, checkpoint string }{
		{`{"event":"step","step":2,`, "no space left on device\ntraining ended after step 2 of 80; no checkpoint " +
			"yet; start again by jenga train --resume runs/mails", ""},
		{`{"event":"step","step":6,`, "no space left on device\ntraining ended after step 6 of 80; best so far: " +
			"epoch 1 in " + best + "; go on by jenga train --resume runs/mails", best},
	} {
		out := &hook{line: func(text string) error {
			if strings.HasPrefix(text, test.at) {
				return full
			}
			return nil
		}}
		c := &commands{out: out, log: new(strings.Builder)}
		err := c.trainHere(t.Context(), trainFlags{json: true, force: true}, defaultFile)
		if err == nil || err.Error() != test.want || !errors.Is(err, full) {
			t.Errorf("a full disk at %s: %v, want %s", test.at, err, test.want)
		}
		var ended struct{ Event, Error, Checkpoint string }
		if err := json.Unmarshal([]byte(out.last), &ended); err != nil || ended.Event != "error" ||
			ended.Error != full.Error() || ended.Checkpoint != test.checkpoint {
			t.Errorf("the last event is %s, %v; want the checkpoint %q", out.last, err, test.checkpoint)
		}
	}
}

func TestAnInterruptionSaysWhatFailedBesides(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	replaced := filepath.Join("runs", "mails", "replaced-run")
	out := &hook{line: func(text string) error {
		if strings.HasPrefix(text, `{"event":"step","step":2,`) {
			cancel()
			writeFile(t, replaced, "notes.txt", "which no run has: the folder is not removed")
		}
		return nil
	}}
	c := &commands{out: out, log: new(strings.Builder)}
	err := c.train(ctx, trainFlags{json: true, force: true}, defaultFile)
	var stopped interruption
	if !errors.As(err, &stopped) || !strings.HasPrefix(err.Error(), "interrupted after step 2 of 80; ") ||
		!strings.Contains(err.Error(), "\nremove "+replaced+": ") {
		t.Errorf("train = %v", err)
	}
	if !strings.Contains(out.last, `"event":"interrupted"`) || !strings.Contains(out.last, `"error":"remove `) {
		t.Errorf("the last event is %s", out.last)
	}
}

// signaller sends this process a signal when it has seen an event, once: a second one may come when signals end the
// process again.
type signaller struct {
	event string
	sent  bool
	last  string // what was written last
}

func (s *signaller) Write(p []byte) (int, error) {
	s.last = string(p)
	if !s.sent && strings.Contains(s.last, `"event":"`+s.event+`"`) {
		s.sent = true
		process, err := os.FindProcess(os.Getpid())
		if err != nil {
			return 0, err
		}
		return len(p), process.Signal(syscall.SIGTERM)
	}
	return len(p), nil
}

func TestSIGTERMEndsATrainingAsCtrlCDoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send SIGTERM")
	}
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	out, log := &signaller{event: "eval"}, new(strings.Builder)
	status := Run([]string{"train", "--json", "--set", "training.num_epochs=2000"}, strings.NewReader(""), out, log)
	best, _ := regexp.MatchString("; best so far: epoch [0-9]+ in runs/mails/best", log.String())
	if status != exitInterrupted || !strings.HasPrefix(out.last, `{"event":"interrupted","step":`) || !best {
		t.Errorf("status %d, last event %s, %s", status, out.last, log)
	}
}

func TestABadLossNamesTheCommandThatGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	var data strings.Builder
	data.WriteString("text,value\n")
	for i := range 160 {
		value := fmt.Sprint(i % 3)
		if i == 21 { // not in the first 20 steps of seed 42
			value = "1e9" // the square of its error explodes
		}
		fmt.Fprintf(&data, "note %d,%s\n", i, value)
	}
	writeFile(t, ".", "a.csv", data.String())
	writeFile(t, ".", "dev.csv", "text,value\nnote,1\nnote 1,2\n")
	writeFile(t, ".", "experiment.yaml", `
project_name: notes
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - name: much
    type: regression
    data: {train: a.csv, dev: dev.csv}
    heads: [{type: regression, scale: none}]
training: {batch_size: 4, num_epochs: 2, save_strategy: steps, save_steps: 5}
`)
	status, _, log := call("", "train")
	const goOn = "jenga train --resume runs/notes --set training.on_bad_loss=skip --allow-changes experiment"
	if status != exitMistake || !strings.HasSuffix(log, "; go on by "+goOn+"\n") {
		t.Fatalf("train: status %d, %s\nwant %s", status, log, goOn)
	}
	if status, _, log = call("", strings.Fields(goOn)[1:]...); status != 0 {
		t.Errorf("%s: status %d, %s", goOn, status, log)
	}
}

// TestABadLossBeforeACheckpointNamesTheCommandThatStartsAgain trains with a rate that makes the second step's loss NaN.
func TestABadLossBeforeACheckpointNamesTheCommandThatStartsAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	status, _, log := call("", "train", "--set", "training.learning_rate=1e30", "--set", "training.warmup_ratio=0")
	const goOn = "start again by jenga train --resume runs/mails --set training.learning_rate=RATE"
	if status != exitMistake || !strings.Contains(log, "step 2: ") ||
		!strings.Contains(log, "ended after step 1 of ") ||
		!strings.HasSuffix(log, "; no checkpoint yet; "+goOn+", with a lower RATE\n") {
		t.Fatalf("train: status %d, %s\nwant %s", status, log, goOn)
	}
	_, args, _ := strings.Cut(strings.Replace(goOn, "RATE", "1e-3", 1), "jenga ")
	if status, _, log = call("", strings.Fields(args)...); status != 0 {
		t.Errorf("%s: status %d, %s", args, status, log)
	}
}

// interruptedAt trains ./experiment.yaml until an event has been written a number of times.
func interruptedAt(t *testing.T, event string, n int, f trainFlags) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.json = true
	c := &commands{out: &interrupter{event: event, left: n, cancel: cancel}, log: new(strings.Builder)}
	if err := c.train(ctx, f, defaultFile); err == nil || !strings.HasPrefix(err.Error(), "interrupted ") {
		t.Fatalf("train = %v", err)
	}
}

func TestResumeFindsTheRun(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	short := trainFlags{set: []string{"training.num_epochs=3"}}
	last := filepath.Join("runs", "mails", "last")
	for _, test := range []struct {
		args []string
		dir  string // to which the command changes
		want string
	}{
		{[]string{"--set", "training.num_epochs=3"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"experiment.yaml", "--set", "training.num_epochs=3"}, ".", "training goes on after step 5 of 12, "},
		{[]string{"runs/mails"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"runs/mails/"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{last}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{[]string{"--out", "runs/mails"}, ".", "training goes on after step 5 of 12, from " + last + "\n"},
		{nil, "runs/mails", "training goes on after step 5 of 12, from last\n"},
	} {
		if err := os.RemoveAll("runs"); err != nil {
			t.Fatal(err)
		}
		interruptedAt(t, "step", 5, short)
		t.Chdir(filepath.Join(home, test.dir))
		status, out, log := call("", append([]string{"train", "--resume"}, test.args...)...)
		if status != 0 || !strings.HasPrefix(log, test.want) || !strings.Contains(out, "trained in ") {
			t.Errorf("train --resume %v in %s: status %d\n%s%s", test.args, test.dir, status, out, log)
		}
		t.Chdir(home)
	}

	// a run that is finished
	status, out, log := call("", "train", "--resume", "runs/mails")
	if status != 0 || out != "" || log != "runs/mails: its training is finished, after step 12 of 12\n" {
		t.Errorf("a finished run: status %d, %s%s", status, out, log)
	}
	done := regexp.MustCompile(`^\{"event":"done",.*\}\n$`)
	if status, out, _ := call("", "train", "--resume", "runs/mails", "--json"); status != 0 || !done.MatchString(out) {
		t.Errorf("a finished run as JSON: status %d, %s", status, out)
	}
	const more = "training goes on after step 12 of 16, from runs/mails/last\nthe training had ended: the learning " +
		"rate goes on from 0.00187, by lr_scheduler: linear over all 16"
	for _, c := range []struct {
		args, log string
		status    int
	}{
		{"runs/mails --set training.num_epochs=4", more, 0},
		{"runs/mails --set training.num_epochs=4", "its training is finished, after step 16 of 16", 0},
		{"--out runs/mails --set training.num_epochs=2", "training.num_epochs: was 4, is 2", exitMistake},
		{"runs/mails --set training.learning_rate=1 --allow-changes experiment", "has no more steps", exitMistake},
		{"experiment.yaml", "after step 16 of 80, from runs/mails/last", 0},
	} {
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(log, c.log) {
			t.Errorf("train --resume %s of a finished run: status %d\n%s", c.args, status, log)
		}
	}
}

func TestResumeWithoutACheckpointStartsFromTheBeginning(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	const begins = "runs/mails: no checkpoint to resume from: training starts from the beginning\n"
	first := func() { // what a kill leaves before the first checkpoint
		interruptedAt(t, "step", 2, trainFlags{force: true, set: []string{"training.num_epochs=2"}})
		if err := os.RemoveAll(filepath.Join("runs", "mails", "last")); err != nil {
			t.Fatal(err)
		}
	}
	first()
	for _, args := range []string{"runs/mails", "experiment.yaml --set training.num_epochs=2"} {
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(args)...)...)
		if status != 0 || !strings.HasPrefix(log, begins) || !strings.Contains(log, "step 8 of 8") {
			t.Errorf("train --resume %s: status %d, %s", args, status, log)
		}
		first() // beside an earlier run
	}

	// no run at all
	if status, _, log := call("", "train", "--resume", "--set", "training.num_epochs=2", "--out", "runs/new",
		"experiment.yaml"); status != 0 || !strings.HasPrefix(log, "runs/new: no checkpoint to resume from") {
		t.Errorf("without a run: status %d, %s", status, log)
	}
	const again = "; a training that was killed before this was a run begins again by jenga train --resume FILE " +
		"--out runs/"
	for _, args := range []string{"--out runs/none", "runs/none", "runs/taught"} {
		if err := os.MkdirAll("runs/taught/teachers", 0o755); err != nil { // before there is an experiment.yaml
			t.Fatal(err)
		}
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(args)...)...)
		if _, folder, _ := strings.Cut(args, "runs/"); status != exitMistake || !strings.HasPrefix(log, "runs/"+folder+
			": no ") || !strings.HasSuffix(log, again+folder+"\n") {
			t.Errorf("--resume %s without a run or a file: status %d, %s", args, status, log)
		}
	}
	if status, _, log := call("", "train", "--resume", "experiment.yaml", "--set", "training.num_epochs=2", "--out",
		"runs/taught"); status != 0 {
		t.Errorf("what the error names: status %d, %s", status, log)
	}
	writeFile(t, "other", "notes.txt", "")
	status, _, log := call("", "train", "--resume", "other")
	if status != exitMistake || !strings.HasPrefix(log, "other: no run to resume: the folder has no experiment.yaml") ||
		strings.Contains(log, again) {
		t.Errorf("in another folder: status %d, %s", status, log)
	}
	writeFile(t, "papers", "thesis.txt", "")
	if status, _, log := call("", "train", "--resume", "experiment.yaml", "--out", "papers"); status != exitMistake ||
		!strings.HasPrefix(log, "papers holds files, but no run") {
		t.Errorf("in a folder of other files: status %d, %s", status, log)
	}
}

func TestResumeRefusesChangesAndWrongFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	interruptedAt(t, "step", 5, trainFlags{})
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"--set training.warmup_steps=7", exitMistake, "experiment: training.warmup_steps: was 0, is 7\nundo the " +
			"change, or go on all the same by --allow-changes experiment\n"},
		{"--force", exitUsage, "--resume goes on with a run, --force replaces it"},
		{"--allow-changes weather", exitUsage, "--allow-changes weather: want experiment, data, jenga, kernels"},
		{"--allow-changes data,,experiment", exitUsage, "--allow-changes \"data,,experiment\": an empty name; want " +
			"some of experiment, data, jenga, kernels, joined by commas\n"},
		{"--allow-changes=", exitUsage, "--allow-changes \"\": an empty name; want some of experiment, data"},
		{"runs/mails --out runs/other", exitUsage, "--resume of the run runs/mails cannot write to --out runs/other"},
	} {
		status, _, log := call("", append([]string{"train", "--resume"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(log, test.want) {
			t.Errorf("train --resume %s: status %d, %s", test.args, status, log)
		}
	}

	// the steps are those of the changed plan
	status, _, log := call("", "train", "--resume", "--set", "training.max_steps=7", "--allow-changes", "experiment")
	if status != 0 || !strings.HasPrefix(log, "training goes on after step 5 of 7, from ") {
		t.Errorf("with max_steps=7: status %d, %s", status, log)
	}
	if status, _, log := call("", "train", "--allow-changes", "data"); status != exitUsage ||
		!strings.Contains(log, "no effect without --resume") {
		t.Errorf("--allow-changes alone: status %d, %s", status, log)
	}
}

// Training has eval_overall of the tasks that it trains, eval that of all, and says so.
func TestEvaluationsNameTheTasksThatWereKept(t *testing.T) {
	rateTest(t)
	status, _, log := call("", "train", "experiment.yaml", "--set", "training.max_steps=4", "--out", "base")
	if status != 0 {
		t.Fatal(log)
	}
	const grown = `model: {base_model: base, keep_tasks: all}
tasks: [{name: other, type: classification, data: {path: mails.csv, text: body, label: team}}]
training: {rehearse: 0, max_steps: 4}
`
	if err := os.WriteFile("grown.yaml", []byte(grown), 0o644); err != nil {
		t.Fatal(err)
	}
	status, trained, log := call("", "train", "grown.yaml", "--out", "grown")
	if status != 0 {
		t.Fatal(log)
	}
	_, after, _ := strings.Cut(trained, "\neval_overall ")
	want := "\neval_overall " + strings.Split(after, ":")[0] +
		" without the tasks that were kept and not trained, team, as in training\n"
	status, out, log := call("", "eval", "grown")
	if status != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("eval: %d, %s%swant %s", status, out, log, want)
	}

	// without kept tasks there is no such line, nor with kept ones that are rehearsed
	status, _, log = call("", "train", "grown.yaml", "--out", "rehearsed", "--set", "training.rehearse=0.5")
	if status != 0 {
		t.Fatal(log)
	}
	for _, run := range []string{"base", "rehearsed"} {
		if status, out, log := call("", "eval", run); status != 0 || strings.Contains(out, "kept") {
			t.Errorf("eval %s: %d, %s%s", run, status, out, log)
		}
	}
}

// While teachers are trained the run has no checkpoint, but what they have learned is kept.
func TestATrainingThatIsInterruptedAmongItsTeachersGoesOnWithThem(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("training: {", "  - name: length\n    type: "+
		"classification\n    data: {path: mails.csv, text: team, split: {dev: 0.2}, label: team}\ntraining: "+
		"{teachers: alone, ", "num_epochs: 20", "num_epochs: 3").Replace(smallExperiment))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &commands{out: &interrupter{event: "eval", left: 2, cancel: cancel}, log: new(strings.Builder)}
	err := c.train(ctx, trainFlags{json: true}, defaultFile)
	teachers := filepath.Join("runs", "mails", "teachers")
	want := "interrupted before the first step; no checkpoint yet, but teachers in " + teachers +
		"; go on by jenga train --resume runs/mails"
	if err == nil || err.Error() != want {
		t.Errorf("train = %v, want %s", err, want)
	}
	status, _, log := call("", "train", "--resume", "runs/mails")
	if want := "runs/mails: no checkpoint to resume from: training starts from the beginning, with what " + teachers +
		" has by the same options\n"; status != 0 || !strings.HasPrefix(log, want) {
		t.Errorf("train --resume: status %d, %s; want %s", status, log, want)
	}
}
