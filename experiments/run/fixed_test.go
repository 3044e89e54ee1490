package run

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
)

// TestKeysThatTheCheckpointFixesAreRefused changes keys that would have no effect, since the checkpoint has the
// tokenizer and the weights.
func TestKeysThatTheCheckpointFixesAreRefused(t *testing.T) {
	folder := interruptedRun(t, 6)
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	const has = "the checkpoint has it already"
	for set, want := range map[string]string{
		"model.encoder.heads=4": "model.encoder.heads: was 2, is 4: the weights of the checkpoint are those of 2 " +
			"attention heads",
		"tokenizer.train.vocab_size=100":        "tokenizer.train.vocab_size: was 200, is 100: " + has,
		"tokenizer.train.lowercase=false":       "tokenizer.train.lowercase: was true, is false: " + has,
		"tokenizer.type=words":                  "tokenizer.type: was wordpiece, is words: " + has,
		"model.encoder.initializer_range=0.125": "model.encoder.initializer_range: was 0.02, is 0.125: " + has,
	} {
		for _, allowed := range [][]string{nil, {"experiment"}} {
			_, err := Resume(t.Context(), mustRead(t, found.File, set), found.Point, nil, allowed)
			if err == nil || !strings.Contains(err.Error(), "  experiment: "+want+"\n") ||
				strings.Contains(err.Error(), "argument allow-changes") {
				t.Errorf("with %s, and %q allowed, Resume = %v, want %s", set, allowed, err, want)
			}
		}
	}

	// beside what may differ
	e := mustRead(t, found.File, "tokenizer.type=words", "training.learning_rate=0.5")
	_, err = Resume(t.Context(), e, found.Point, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "tokenizer.type: was wordpiece, is words: ") ||
		!strings.HasSuffix(err.Error(), "undo the changes of what the checkpoint fixes; "+
			"undo the others, or go on all the same by argument allow-changes experiment") {
		t.Errorf("Resume = %v", err)
	}
}
