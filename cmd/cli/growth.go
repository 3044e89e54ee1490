package cli

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/jenga-nlp/jenga/experiments/report"
)

// writeOld writes a table of what heads of tasks of the base run have lost or gained; nothing for none.
func writeOld(w io.Writer, old []report.OldHead) error {
	old = slices.DeleteFunc(slices.Clone(old), func(h report.OldHead) bool { return !h.Measured })
	if len(old) == 0 {
		return nil
	}
	fmt.Fprintln(w, "tasks of the base run on dev, before training and in the best checkpoint, in %:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "task\thead\tmetric\tbefore\tafter\tchange")
	for _, h := range old {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%.2f\t%+.2f\n", h.Task, h.Head, h.Metric, 100*h.Before, 100*h.After,
			100*(h.After-h.Before))
	}
	return table.Flush()
}
