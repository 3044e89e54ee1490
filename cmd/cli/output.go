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

// onTerminal tells whether w is a terminal where bars may move.
func onTerminal(w io.Writer) bool { return terminalWidth(w) > 0 && os.Getenv("TERM") != "dumb" }

// terminalWidth is how many characters a line of w has, 0 where it is no terminal.
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

// columns says what a table of scores has.
type columns struct {
	metrics        int // of each head, the main one first
	loss, examples bool
}

// layouts are the tables of scores, each narrower than the one before.
var layouts = []columns{
	{4, true, true}, {3, true, true}, {2, true, true}, {1, true, true}, {1, false, true}, {1, false, false},
}

// writeScores writes a table of scores: a line for each head, and one for each group that is judged together. On a
// terminal it has what fits into a line.
func writeScores(w io.Writer, groups []multitask.GroupMetrics) error {
	_, err := io.WriteString(w, fittingTable(groups, terminalWidth(w)))
	return err
}

// fittingTable is the first of the layouts' tables whose lines have at most width characters, the last if none has; the
// first for 0.
func fittingTable(groups []multitask.GroupMetrics, width int) string {
	var table string
	for _, columns := range layouts {
		if table = scoreTable(groups, columns); width == 0 || widest(table) <= width {
			break
		}
	}
	return table
}

// widest is the length of a text's longest line in characters.
func widest(text string) int {
	width := 0
	for line := range strings.Lines(text) {
		width = max(width, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return width
}

// say writes a run's warnings, a line each.
func (c *commands) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.log, warning)
	}
}

func scoreTable(groups []multitask.GroupMetrics, show columns) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(task, head, examples, loss, scores string) {
		cells := []string{task, head}
		if show.examples {
			cells = append(cells, examples)
		}
		if show.loss {
			cells = append(cells, loss)
		}
		fmt.Fprintln(table, strings.Join(append(cells, scores), "\t"))
	}
	row("task", "head", "examples", "loss", "scores in %")
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				loss, scores := scoresOf(head, show.metrics)
				row(task.Task, head.Head, strconv.Itoa(head.Examples), loss, scores)
			}
		}
		if g.AllRight != nil {
			row(strings.Join(g.Exact(), " + "), "", "", "", fmt.Sprintf("all_right %.2f", 100**g.AllRight))
		}
	}
	table.Flush()
	return text.String()
}

// scoresOf writes a head's loss and its first metrics, at most so many.
func scoresOf(head multitask.HeadMetrics, metrics int) (loss, scores string) {
	loss = "-"
	if head.Loss.Units > 0 {
		loss = fmt.Sprintf("%.4f", head.Loss.Mean())
	}
	if len(head.Metrics) == 0 {
		return loss, "nothing labelled"
	}
	var shown []string
	for _, m := range head.Metrics[:min(metrics, len(head.Metrics))] {
		if m.Lower { // an error, in a unit of its own
			shown = append(shown, fmt.Sprintf("%s %.4g", m.Name, m.Value))
			continue
		}
		shown = append(shown, fmt.Sprintf("%s %.2f", m.Name, 100*m.Value))
	}
	return loss, strings.Join(shown, "  ")
}

// mostTaken is how many labels a label is said to be taken for.
const mostTaken = 3

// writeLabels writes a table of each head's labels: how they do, and which they are most often taken for.
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
				fmt.Fprintln(table, "label\tprecision\trecall\tf1\tsupport\ttaken for")
				for _, label := range slices.Sorted(maps.Keys(head.Tables.Labels)) {
					s := head.Tables.Labels[label]
					fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%d\t%s\n", label, 100*s.Precision, 100*s.Recall, 100*s.F1,
						s.Support, takenFor(label, head.Tables.Confusion[label]))
				}
				table.Flush()
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// takenFor lists the other labels that a label is most often taken for, and how often.
func takenFor(label string, counts map[string]int) string {
	others := slices.Sorted(maps.Keys(counts))
	others = slices.DeleteFunc(others, func(other string) bool { return other == label })
	slices.SortStableFunc(others, func(a, b string) int { return counts[b] - counts[a] })
	var shown []string
	for _, other := range others[:min(mostTaken, len(others))] {
		shown = append(shown, fmt.Sprintf("%s %d", other, counts[other]))
	}
	return strings.Join(shown, ", ")
}
