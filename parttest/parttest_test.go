package parttest_test

import (
	"testing"

	"github.com/jenga-nlp/jenga/parttest"
)

func TestHeads(t *testing.T) {
	for name, options := range map[string][]string{
		"linear": {"", "dropout: 0.2", "{pool: mean, dropout: 0}", "pool: max", "pool: attention"},
		"mlp":    {"", "{hidden: 5, activation: tanh}", "{pool: mean, dropout: 0.3}"},
	} {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Head(t, name, o) })
		}
	}
}

func TestFusions(t *testing.T) {
	for name, options := range map[string][]string{
		"none":      {""},
		"attention": {"", "scale: length", "{scale: residual, hidden_size: 5}"},
	} {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Fusion(t, name, o) })
		}
	}
}

func TestTasks(t *testing.T) {
	for _, name := range []string{"classification", "ner", "sentiment", "tagging"} {
		t.Run(name, func(t *testing.T) { parttest.Task(t, name, "") })
	}
}
