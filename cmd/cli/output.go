package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/jenga-nlp/jenga/multitask"
)

// onTerminal reports whether w is a terminal that can show progress bars.
func onTerminal(w io.Writer) bool { return showsBars(terminalWidth(w), os.Getenv("TERM")) }

// showsBars reports whether a bar fits into a line of a terminal with a number of columns, and can be redrawn there. A
// bar that is wrapped leaves its parts behind.
func showsBars(columns int, term string) bool {
	const steps = 9999 // a usual training has fewer
	return columns >= barWidth(steps) && term != "dumb"
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns how many characters a line of w has, 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// writeLine writes v as one JSON line.
func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// columns are those of a table of metrics.
type columns struct {
	metrics        int // of each head, the main one first
	loss, examples bool
}

// layouts are the columns to choose from, each choice narrower than the one before.
var layouts = []columns{
	{4, true, true}, {3, true, true}, {2, true, true}, {1, true, true}, {1, false, true}, {1, false, false},
}

// writeMetrics writes a table of metrics: a line for each head, and one for each group with metrics of its own. On a
// terminal it has the columns that fit into a line.
func writeMetrics(w io.Writer, groups []multitask.GroupMetrics) error {
	_, err := io.WriteString(w, fittingTable(groups, terminalWidth(w)))
	return err
}

// fittingTable returns the table of the first layout whose lines have at most width characters, of the last layout if
// none fits, of the first for a width of 0.
func fittingTable(groups []multitask.GroupMetrics, width int) string {
	var table string
	for _, columns := range layouts {
		if table = metricsTable(groups, columns); width == 0 || widest(table) <= width {
			break
		}
	}
	return table
}

// widest returns the length of a text's longest line in characters.
func widest(text string) int {
	width := 0
	for line := range strings.Lines(text) {
		width = max(width, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return width
}

// warn writes a run's warnings, a line each.
func (c *commands) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.log, warning)
	}
}

func metricsTable(groups []multitask.GroupMetrics, show columns) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(task, head, examples, loss, metrics string) {
		cells := []string{task, head}
		if show.examples {
			cells = append(cells, examples)
		}
		if show.loss {
			cells = append(cells, loss)
		}
		fmt.Fprintln(table, strings.Join(append(cells, metrics), "\t"))
	}
	row("task", "head", "examples", "loss", "metrics in %")
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				loss, metrics := metricsOf(head, show.metrics)
				row(task.Task, head.Head, strconv.Itoa(head.Examples), loss, metrics)
			}
		}
		if g.AllRight != nil {
			row(strings.Join(g.DiscreteTasks(), " + "), "", "", "", fmt.Sprintf("all_right %.2f", 100**g.AllRight))
		}
	}
	table.Flush()
	return text.String()
}

// metricsOf formats a head's loss and its first n metrics.
func metricsOf(head multitask.HeadMetrics, n int) (loss, metrics string) {
	loss = "-"
	if head.Loss.Units > 0 {
		loss = fmt.Sprintf("%.4f", head.Loss.Mean())
	}
	if len(head.Metrics) == 0 {
		return loss, "no labels"
	}
	var shown []string
	for _, m := range head.Metrics[:min(n, len(head.Metrics))] {
		if m.Lower { // an error, in a unit of its own
			shown = append(shown, fmt.Sprintf("%s %.4g", m.Name, m.Value))
			continue
		}
		shown = append(shown, fmt.Sprintf("%s %.2f", m.Name, 100*m.Value))
	}
	if n < layouts[0].metrics && n < len(head.Metrics) {
		shown = append(shown, "…") // the terminal is too narrow for the others
	}
	return loss, strings.Join(shown, "  ")
}

// mostConfused is how many labels the table of labels lists as predicted in place of a label.
const mostConfused = 3

// writeLabels writes a table of each head's labels: their metrics, and the labels most often predicted in their place.
func writeLabels(w io.Writer, groups []multitask.GroupMetrics) error {
	var text strings.Builder
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				if head.Tables == nil {
					continue
				}
				fmt.Fprintf(&text, "\n%s, %s\n", task.Task, head.Head)
				table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "label\tprecision\trecall\tf1\tsupport\tconfused with")
				for _, label := range slices.Sorted(maps.Keys(head.Tables.Labels)) {
					s := head.Tables.Labels[label]
					fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%d\t%s\n", label, 100*s.Precision, 100*s.Recall, 100*s.F1,
						s.Support, confusedWith(label, head.Tables.Confusion[label]))
				}
				table.Flush()
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// confusedWith lists the other labels most often predicted in place of label, with their counts.
func confusedWith(label string, counts map[string]int) string {
	others := slices.Sorted(maps.Keys(counts))
	others = slices.DeleteFunc(others, func(other string) bool { return other == label })
	slices.SortStableFunc(others, func(a, b string) int { return counts[b] - counts[a] })
	var shown []string
	for _, other := range others[:min(mostConfused, len(others))] {
		shown = append(shown, fmt.Sprintf("%s %d", other, counts[other]))
	}
	return strings.Join(shown, ", ")
}
