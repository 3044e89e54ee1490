package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
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

// interrupter cancels a context when it has seen a number of events of a kind.
type interrupter struct {
	event  string
	left   int
	cancel context.CancelFunc
}

func (i *interrupter) Write(p []byte) (int, error) {
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
	best := filepath.Join("runs", "mails", "best")
	for i, test := range []struct {
		event string
		n     int
		want  string
	}{
		{"step", 2, "interrupted after step 2 of 80; no checkpoint yet; train again with --force"},
		{"eval", 1, "interrupted after step 4 of 80; best so far: epoch 1 in " + best},
		{"step", 3, "interrupted after step 3 of 80; no checkpoint yet; runs/mails holds the run from before"},
		{"eval", 2, "interrupted after step 8 of 80; best so far: epoch "},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		c := &commands{out: &interrupter{test.event, test.n, cancel}, log: new(strings.Builder)}
		err := c.train(ctx, trainFlags{json: true, force: true}, defaultFile)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("training %d: after %d events %s: %v, want %s", i, test.n, test.event, err, test.want)
		}
		cancel()
	}
}
