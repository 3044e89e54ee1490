package parttest_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/parttest"
)

// elsewhere are the parts that ship whose tests are in their own packages.
var elsewhere = []string{"hugot"} // it takes models of published files

// The registries have parts of tests too: which ones ship is what docs/parts.md lists, by a test of cmd/jenga.
func TestEachPartThatShipsHasARow(t *testing.T) {
	page, err := os.ReadFile("../docs/parts.md")
	if err != nil {
		t.Fatal(err)
	}
	for chapter, rows := range map[string][]string{
		"Encoders": slices.Collect(maps.Keys(encoderRows)), "Fusion": slices.Collect(maps.Keys(fusionRows)),
		"Heads": slices.Collect(maps.Keys(headRows)), "Tasks": taskRows,
		"Samplers": slices.Collect(maps.Keys(samplerRows)), "Weightings": slices.Collect(maps.Keys(weightingRows)),
	} {
		_, text, _ := strings.Cut(string(page), "\n## "+chapter)
		text, _, _ = strings.Cut(text, "\n## ")
		ships := heading.FindAllStringSubmatch(text, -1)
		if len(ships) < 2 {
			t.Errorf("%s: docs/parts.md has %d parts", chapter, len(ships))
		}
		for _, part := range ships {
			if name := part[1]; !slices.Contains(rows, name) && !slices.Contains(elsewhere, name) {
				t.Errorf("%s: %s ships, and no row of this file tests it by parttest", chapter, name)
			}
		}
	}
}

var heading = regexp.MustCompile(`(?m)^### (\S+)$`)

var headRows = map[string][]string{
	"linear": {"", "dropout: 0.2", "{pool: mean, dropout: 0}", "pool: max", "pool: attention",
		"{label_smoothing: 0.1, class_weights: balanced}", "{focal_gamma: 2, tune: each}",
		"{pos_weight: balanced, threshold: 0.3, tune: none}"},
	"mlp": {"", "{hidden: 5, activation: tanh}", "{pool: mean, dropout: 0.3}"},
	"crf": {"", "{constraints: bio, dropout: 0.2}"},
	"focus": {
		"{lstm_layers: 1, lstm_hidden: 6, attention_heads: 3, dropout: 0.2}",
		"{lstm_layers: 0, attention_heads: 2, lens_per_head: true}",
		"{lstm_layers: 0, attention_heads: 2, normalise: softmax}",
	},
	"span":              {"", "{no_answer: true, max_answer_tokens: 2}"},
	"reconstruction":    {"", "{hidden: 3, pool: cls}", "{pool: max, false_alarms: 0}"},
	"attention_pattern": {"", "fit_texts: 3"},
	"mlm":               {"", "{share: 0.5, guesses: 2}"},
	"similarity": {"range: [0, 2]", "{range: [0, 2], pool: attention, scale: 5}",
		"{loss: mse, range: [0, 2]}", "{loss: mse, range: [0, 2], pool: max}"},
	"regression": {"", "{range: [-1, 4], loss: huber, pool: mean}",
		"{scale: standard, loss: mae, dropout: 0}"},
}

func TestHeads(t *testing.T) {
	for name, options := range headRows {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Head(t, name, o) })
		}
	}
}

var encoderRows = map[string][]string{
	"bilstm":      {"{embedding: 6, layers: 2, hidden: 5}", "{embedding: 24, layers: 3, hidden: 12}"},
	"transformer": {"{layers: 2, width: 12, heads: 3, feed_forward: 20, max_positions: 16}"},
}

func TestEncoders(t *testing.T) {
	for name, options := range encoderRows {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Encoder(t, name, o) })
		}
	}
}

var fusionRows = map[string][]string{
	"none":      {""},
	"attention": {"", "scale: length", "{scale: residual, hidden_size: 5}", "scale: gated"},
	"concat":    {"", "hidden_size: 5"},
	"mix":       {"", "layers: 2"},
	"adapter":   {"", "size: 3"},
}

func TestFusions(t *testing.T) {
	for name, options := range fusionRows {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Fusion(t, name, o) })
		}
	}
}

var taskRows = []string{"classification", "multi_label", "ner", "anomaly", "mlm", "qa_qc", "question_answering",
	"regression", "sentiment", "similarity", "tagging"}

func TestTasks(t *testing.T) {
	for _, name := range taskRows {
		t.Run(name, func(t *testing.T) { parttest.Task(t, name, "") })
	}
}

var samplerRows = map[string][]string{
	"proportional": {"", "groups: 2"},
	"uniform":      {"", "groups: 2"},
	"round_robin":  {"", "groups: 2"},
	"temperature":  {"", "{temperature: 4, cap: 50}", "groups: 2"},
	"weights":      {"", "{weights: {second: 3, beside: 0.5}}", "groups: all"},
	"annealed":     {"", "end: 0", "groups: 2"},
	"dynamic":      {"", "{targets: {third: 0.9}, rehearsal: 0.5, tolerance: 0.1}", "groups: 2"},
}

func TestSamplers(t *testing.T) {
	for name, options := range samplerRows {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Sampler(t, name, o) })
		}
	}
}

var weightingRows = map[string][]string{
	"fixed":       {""},
	"uncertainty": {"", "learning_rate: 0.1"},
	"pcgrad":      {""},
	"dwa":         {"", "{every: 4, temperature: 1}"},
	"rlw":         {""},
	"gradnorm":    {"", "{alpha: 0.5, learning_rate: 0.1, initial_steps: 1}"},
	"cagrad":      {"", "c: 0"},
	"famo":        {"", "{gamma: 0, learning_rate: 0.1}"},
}

func TestWeightings(t *testing.T) {
	for name, options := range weightingRows {
		for _, o := range options {
			t.Run(name+" "+o, func(t *testing.T) { parttest.Weighting(t, name, o) })
		}
	}
}
