package cli

import (
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
