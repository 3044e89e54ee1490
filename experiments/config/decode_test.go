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

func TestTrainingOptionsOutOfRange(t *testing.T) {
	for option, want := range map[string]string{
		"max_grad_norm: -1":                   "max_grad_norm: want a number of at least 0, have -1",
		"warmup_ratio: 1.5":                   "warmup_ratio: want a number in [0, 1], have 1.5",
		"warmup_ratio: -0.1":                  "warmup_ratio: want a number in [0, 1], have -0.1",
		"eval_strategy: steps, eval_steps: 0": "eval_steps: want a whole number of at least 1, have 0",
		"learning_rate: 0":                    "learning_rate: want a number above 0, have 0",
		"weight_decay: -1":                    "weight_decay: want a number of at least 0, have -1",
		"batch_size: 0":                       "batch_size: want a whole number of at least 1, have 0",
		"batch_tokens: -1":                    "batch_tokens: want a whole number of at least 0, have -1",
		"max_steps: -1":                       "max_steps: want a whole number of at least 0, have -1",
		"warmup_steps: -1":                    "warmup_steps: want a whole number of at least 0, have -1",
		"gradient_accumulation_steps: 0":      "gradient_accumulation_steps: want a whole number of at least 1, have 0",
		"early_stopping_patience: -1":         "early_stopping_patience: want a whole number of at least 0, have -1",
		"logging_steps: 0":                    "logging_steps: want a whole number of at least 1, have 0",
		"cache_memory: 16777217":              "cache_memory: want a whole number in [0, 16777216], have 16777217",
		"precision: float16":                  "precision: want float32 or bf16, have \"float16\"",
	} {
		_, err := Read(scratchFile(t, "", option), nil)
		if err == nil || !strings.HasSuffix(err.Error(), "training: "+want) {
			t.Errorf("%s: %v, want %s", option, err, want)
		}
	}
}
