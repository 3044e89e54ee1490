package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// someMetrics is an evaluation of two tasks on the same examples, and one of a task without labels.
func someMetrics() []multitask.GroupMetrics {
	metrics := []tasks.Metric{{Name: "accuracy", Value: 0.5}, {Name: "precision", Value: 0.25},
		{Name: "recall", Value: 1}, {Name: "f1", Value: 0.125}, {Name: "mcc"}}
	head := func(name string) multitask.HeadMetrics {
		return multitask.HeadMetrics{Head: name, Examples: 8, Loss: multitask.Loss{Sum: 3, Units: 2}, Metrics: metrics}
	}
	right := 0.25
	return []multitask.GroupMetrics{
		{AllRight: &right, Tasks: []multitask.TaskMetrics{
			{Task: "team", Discrete: true, Examples: 8, Heads: []multitask.HeadMetrics{head("team")}},
			{Task: "things", Discrete: true, Examples: 8, Heads: []multitask.HeadMetrics{head("things")}},
		}},
		{Tasks: []multitask.TaskMetrics{{Task: "mood", Heads: []multitask.HeadMetrics{{Head: "mood"}}}}},
	}
}

func TestATableFitsItsTerminal(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string // its second line
	}{
		{0, "team           team    8         1.5000  accuracy 50.00  precision 25.00  recall 100.00  f1 12.50"},
		{200, "team           team    8         1.5000  accuracy 50.00  precision 25.00  recall 100.00  f1 12.50"},
		{90, "team           team    8         1.5000  accuracy 50.00  precision 25.00  recall 100.00  …"},
		{80, "team           team    8         1.5000  accuracy 50.00  precision 25.00  …"},
		{60, "team           team    8         1.5000  accuracy 50.00  …"},
		{50, "team           team    8         accuracy 50.00  …"},
		{40, "team           team    accuracy 50.00  …"},
	} {
		table := fittingTable(someMetrics(), test.width)
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		if len(lines) != 5 || lines[1] != test.want {
			t.Errorf("at %d characters the table is\n%s\nwant the line %s", test.width, table, test.want)
		}
		if test.width > 40 && widest(table) > test.width {
			t.Errorf("at %d characters the table has %d", test.width, widest(table))
		}
	}
}

func TestATableShowsHeadsWithoutLabels(t *testing.T) {
	lines := strings.Split(fittingTable(someMetrics(), 0), "\n")
	if got, want := lines[4], "mood           mood    0         -       no labels"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAllRightLeavesOutTasksOfNumbers(t *testing.T) {
	groups := someMetrics()
	groups[0].Tasks = append(groups[0].Tasks, multitask.TaskMetrics{Task: "price", Examples: 8})
	if table := fittingTable(groups, 0); !strings.Contains(table, "\nteam + things ") ||
		strings.Contains(table, "things + price") {
		t.Errorf("all_right includes the task of a number:\n%s", table)
	}
}

func TestABarNeedsATerminalThatFits(t *testing.T) {
	for columns, want := range map[int]bool{0: false, 32: false, 40: false, 80: true} {
		if got := showsBars(columns, "xterm"); got != want {
			t.Errorf("bars in %d columns: %v, want %v", columns, got, want)
		}
	}
	if showsBars(80, "dumb") {
		t.Error("a bar on a terminal that cannot redraw its line")
	}
}

func TestABarsDescriptionFitsTheRoom(t *testing.T) {
	for room, want := range map[int]string{-3: "", 10: "", 11: "loss 0.1234", 24: "loss 0.1234",
		25: "loss 0.1234  987 tokens/s", 99: "loss 0.1234  987 tokens/s  epoch 1.5"} {
		if got := fitting(room, "loss 0.1234", "987 tokens/s", "epoch 1.5"); got != want {
			t.Errorf("fitting(%d) = %q, want %q", room, got, want)
		}
	}
}

func TestWriteLabels(t *testing.T) {
	tables := tasks.Tables{
		Labels: map[string]tasks.LabelMetrics{"good": {Precision: 0.5, Recall: 1, F1: 2. / 3, Support: 4},
			"bad": {Support: 9}},
		Confusion: map[string]map[string]int{"good": {"good": 4}, "bad": {"good": 4, "a": 1, "b": 3, "c": 1}},
	}
	groups := []multitask.GroupMetrics{{Tasks: []multitask.TaskMetrics{{Task: "mood",
		Heads: []multitask.HeadMetrics{{Head: "tone", Tables: &tables}, {Head: "amount"}}}}}}
	var out strings.Builder
	if err := writeLabels(&out, groups); err != nil {
		t.Fatal(err)
	}
	want := `
mood, tone
label  precision  recall  f1     support  confused with
bad    0.00       0.00    0.00   9        good 4, b 3, a 1
good   50.00      100.00  66.67  4        
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
