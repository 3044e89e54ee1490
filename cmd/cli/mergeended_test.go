package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/merge"
)

func TestAnInterruptedMergeSaysHowToGoOn(t *testing.T) {
	runsOfOneBase(t)

	// before it: nothing is left
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := new(strings.Builder)
	c := &commands{out: new(strings.Builder), log: log}
	f := mergeFlags{options: merge.Options{Method: merge.Mean}, out: "ab", refit: true}
	err := c.merge(ctx, f, []string{"a", "b"})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(log.String(), "nothing was merged\n") {
		t.Errorf("merge = %v, %s", err, log)
	}
	if _, err := os.Stat("ab"); err == nil {
		t.Fatal("an interrupted merge leaves a run")
	}

	// after an evaluation
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	c.log = &hook{line: func(text string) error {
		if strings.Contains(text, "eval_overall") {
			cancel()
		}
		return nil
	}}
	f.set = []string{"training.num_epochs=50"}
	err = c.merge(ctx, f, []string{"a", "b"})
	var stopped interruption
	if !errors.As(err, &stopped) || !strings.HasPrefix(err.Error(), "interrupted after step ") ||
		!strings.HasSuffix(err.Error(), "; best so far: epoch 1 in ab/best; go on by jenga train --resume ab") {
		t.Fatalf("merge = %v", err)
	}

	// the command that it names works
	status, out, resumed := call("", "train", "--resume", "ab")
	if status != 0 || !strings.Contains(resumed, "training goes on after step ") ||
		!strings.HasSuffix(out, "the model is in ab\n") {
		t.Errorf("train --resume: %d, %s%s", status, out, resumed)
	}
}

// The last warning comes before the training: the merged run is left as it was.
func TestARefitThatIsInterruptedBeforeItsFirstStep(t *testing.T) {
	runsOfOneBase(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := new(strings.Builder)
	log := new(strings.Builder)
	c := &commands{out: out, log: &hook{line: func(text string) error {
		log.WriteString(text)
		if _, err := os.Stat("ab/experiment.yaml"); err == nil {
			cancel()
		}
		return nil
	}}}
	f := mergeFlags{options: merge.Options{Method: merge.Mean}, out: "ab", refit: true, json: true}
	err := c.merge(ctx, f, []string{"a", "b"})
	const want = "the merged run without --refit is in ab; the same command with --force starts again\n"
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(log.String(), want) {
		t.Errorf("merge = %v, %swant %s", err, log, want)
	}
	var last struct{ Event, Resume string }
	if err := json.Unmarshal([]byte(out.String()), &last); err != nil || last.Event != "interrupted" {
		t.Errorf("the event is %s, %v", out, err)
	}
	if status, out, log := call("", "eval", "ab"); status != 0 {
		t.Errorf("eval: %d, %s%s", status, out, log)
	}
}
