package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/jenga-nlp/jenga/multitask"
)

// onTerminal tells whether w is a terminal, where bars may move.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// writeLine writes v as one JSON line.
func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// columns of a table of scores: the main metric and up to this many more.
const moreMetrics = 3

// writeScores writes a table of scores: a line for each head, and one for each group that is judged together.
func writeScores(w io.Writer, groups []multitask.GroupScore) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "task\thead\texamples\tloss\tscores in per cent")
	for _, g := range groups {
		var names []string
		for _, task := range g.Tasks {
			names = append(names, task.Task)
			for _, head := range task.Heads {
				var metrics []string
				for i, m := range head.Metrics {
					if i <= moreMetrics {
						metrics = append(metrics, fmt.Sprintf("%s %.2f", m.Name, 100*m.Value))
					}
				}
				fmt.Fprintf(table, "%s\t%s\t%d\t%.4f\t%s\n", task.Task, head.Head, task.Examples, head.Loss.Mean(), strings.Join(metrics, "  "))
			}
		}
		if g.AllRight != nil {
			fmt.Fprintf(table, "%s\t\t\t\tall_right %.2f\n", strings.Join(names, " + "), 100**g.AllRight)
		}
	}
	table.Flush()
}
