package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
)

// writeTrained writes eval_overall of the tasks that were trained, as training has it, where metrics has kept ones too.
func writeTrained(w io.Writer, kept []string, metrics []multitask.GroupMetrics) error {
	var trained []multitask.GroupMetrics
	var left []string
	for _, g := range metrics {
		of := multitask.GroupMetrics{}
		for _, task := range g.Tasks {
			if slices.Contains(kept, task.Task) {
				left = append(left, task.Task)
			} else {
				of.Tasks = append(of.Tasks, task)
			}
		}
		trained = append(trained, of)
	}
	overall, ok := report.Metrics(trained)[report.Overall]
	if len(left) == 0 || !ok {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s %.2f without the tasks that were kept and not trained, %s, as in training\n",
		report.Overall, 100*overall, strings.Join(left, ", "))
	return err
}

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
