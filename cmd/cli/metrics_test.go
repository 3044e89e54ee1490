package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestALossHasSixDigitsAtMost(t *testing.T) {
	for loss, want := range map[float64]string{
		0.69314718: "0.6931", 12.5: "12.5000", 1234.56789: "1234.57", 0x1p83: "9.67141e+24", math.Inf(1): "+Inf",
	} {
		if got := lossText(loss); got != want {
			t.Errorf("loss %v: %s, want %s", loss, got, want)
		}
	}
}

// someMetrics is an evaluation of two tasks on the same examples, one of a number and one of a task without labels.
func someMetrics() []multitask.GroupMetrics {
	loss := multitask.Loss{Sum: 3, Units: 2}
	right := 0.25
	return []multitask.GroupMetrics{
		{AllRight: &right, Tasks: []multitask.TaskMetrics{
			{Task: "team", Discrete: true, Heads: []multitask.HeadMetrics{{Head: "team", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "accuracy", Value: 0.5}, {Name: "precision_macro", Value: 0.25},
					{Name: "recall_macro", Value: 1}, {Name: "f1_macro", Value: 0.125}, {Name: "mcc"}}}}},
			{Task: "things", Discrete: true, Heads: []multitask.HeadMetrics{{Head: "things", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "span_f1", Value: 0.25}}}}},
			{Task: "price", Heads: []multitask.HeadMetrics{{Head: "price", Examples: 8, Loss: loss,
				Metrics: []tasks.Metric{{Name: "pearson", Value: 0.5}, {Name: "spearman", Undefined: true},
					{Name: "rmse", Value: 12.5, Lower: true}, {Name: "mae", Value: 10, Lower: true}}}}},
		}},
		{Tasks: []multitask.TaskMetrics{{Task: "mood", Heads: []multitask.HeadMetrics{{Head: "mood"}}}}},
	}
}

// All metrics and errors are in the table at each width, and no number in per cent stands with one in a unit.
func TestATableFitsItsTerminal(t *testing.T) {
	const below = "team + things: all_right 25.00\neval_overall 41.67: the mean of each head's first metric\n"
	for width, want := range map[int]string{
		80: `task    head    examples  loss    metrics in %               errors, not in %
team    team    8         1.5000  accuracy 50.00         
                                  precision_macro 25.00
                                  recall_macro 100.00
                                  f1_macro 12.50
things  things  8         1.5000  span_f1 25.00
price   price   8         1.5000  pearson 50.00  spearman -  rmse 12.5  mae 10
mood    mood    0         -       no labels
` + below,
		60: `team, team: examples 8, loss 1.5000, metrics in %
  accuracy 50.00  precision_macro 25.00  recall_macro 100.00
  f1_macro 12.50
things, things: examples 8, loss 1.5000, metrics in %
  span_f1 25.00
price, price: examples 8, loss 1.5000, metrics in %
  pearson 50.00  spearman -
 errors, not in %
  rmse 12.5  mae 10
mood, mood: examples 0, loss -, metrics in %
  no labels
` + below,
	} {
		want = strings.ReplaceAll(want, "         \n", "\n")
		got := metricsText(someMetrics(), width)
		if got != want {
			t.Errorf("at %d characters:\n%s\nwant\n%s", width, got, want)
		}
	}
	const all = "accuracy 50.00  precision_macro 25.00  recall_macro 100.00  f1_macro 12.50\n"
	if got := metricsText(someMetrics(), 0); !strings.Contains(got, "\nteam    team    8         1.5000  "+all) {
		t.Errorf("without a terminal:\n%s", got)
	}
	for width := 24; width < 140; width++ { // the longest item has 21 characters
		got := metricsText(someMetrics(), width)
		if n := widestOf(strings.Split(got, "\n")); n > width {
			t.Errorf("at %d characters a line has %d:\n%s", width, n, got)
		}
		for _, metric := range []string{"accuracy 50.00", "precision_macro 25.00", "recall_macro 100.00",
			"f1_macro 12.50", "span_f1 25.00", "pearson 50.00", "spearman -", "rmse 12.5", "mae 10"} {
			if !strings.Contains(got, metric) {
				t.Errorf("at %d characters the table has no %s:\n%s", width, metric, got)
			}
		}
	}
}

func TestAllRightLeavesOutTasksOfNumbers(t *testing.T) {
	if text := metricsText(someMetrics(), 0); !strings.Contains(text, "\nteam + things: all_right") {
		t.Errorf("all_right includes the task of a number:\n%s", text)
	}
}

func TestATableWithoutLabelsHasNoMean(t *testing.T) {
	if text := metricsText(someMetrics()[1:], 0); strings.Contains(text, "eval_overall") {
		t.Errorf("a mean of no metrics:\n%s", text)
	}
}
