package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
)

// scratchFile is a small experiment on data/train.jsonl; options are added to its head, and training to training.
func scratchFile(t *testing.T, head, training string) string {
	t.Helper()
	dir := sample.Folder(t, map[string]string{"exp.yaml": `
model: {encoder: {type: transformer}}
tasks: [{name: mood, type: classification, data: {train: train.jsonl}, heads: [{name: mood` + head + `}]}]
training: {` + training + `}
`}, "train.jsonl")
	return filepath.Join(dir, "exp.yaml")
}

// All weightings multiply by a head's weight (see TestWeightZeroHasFactorZero in multitask).
func TestWeightsOfZeroAreAMistakeUnderEachWeighting(t *testing.T) {
	for _, name := range multitask.Weightings().Names() {
		_, err := Read(scratchFile(t, ", weight: 0", "weighting: "+name), nil)
		if want := "the weights of all heads are 0"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weighting %s: %v, want %q", name, err, want)
		}
	}
}
