package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

func TestWarningsAreWritten(t *testing.T) {
	const text = "the disk is full: states are encoded anew"
	step, warning := multitask.Step{Number: 1, Of: 3, Loss: 1, Tokens: 5}, multitask.Warning{Text: text}
	for name, events := range map[string][]any{"before the first step": {warning, step}, "after it": {step, warning}} {
		var line, bar strings.Builder
		for _, w := range []watcher{lineWatcher(&line), barWatcher(&bar)} {
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
	bad := multitask.Step{Number: 3, Of: 9, Bad: &multitask.BadStep{}}
	for _, event := range []any{multitask.Evaluation{Epoch: 2}, bad} {
		for what, of := range map[string]func(io.Writer) watcher{"lines": lineWatcher, "a bar": barWatcher} {
			var log strings.Builder
			w := of(&log)
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
		err := c.train(t.Context(), trainFlags{json: true, force: true}, defaultFile)
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

// signaller sends this process a signal when it has seen an event.
type signaller struct {
	event string
	last  string // what was written last
}

func (s *signaller) Write(p []byte) (int, error) {
	s.last = string(p)
	if strings.Contains(s.last, `"event":"`+s.event+`"`) {
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
