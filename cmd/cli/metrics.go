package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
)

// metricsShown is how many metrics of a head a table has besides its errors, the main one first; --json has all.
const metricsShown = 4

// writeMetrics writes a table of metrics with a line for each head, and below it a line for each group with metrics of
// its own and one with eval_overall. On a terminal, metrics that do not fit into a line continue on the next ones.
func writeMetrics(w io.Writer, groups []multitask.GroupMetrics) error {
	_, err := io.WriteString(w, metricsText(groups, terminalWidth(w)))
	return err
}

// metricsText returns what writeMetrics writes, in lines of at most width characters; 0: as long as they are.
func metricsText(groups []multitask.GroupMetrics, width int) string {
	var rows []metricsRow
	var below []string
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				rows = append(rows, rowOf(task.Task, head))
			}
		}
		if g.AllRight != nil {
			below = append(below, fmt.Sprintf("%s: all_right %.2f", strings.Join(g.DiscreteTasks(), " + "),
				100**g.AllRight))
		}
	}
	if overall, ok := report.Metrics(groups)[report.Overall]; ok {
		below = append(below, fmt.Sprintf("%s %.2f: the mean of each head's first metric", report.Overall, 100*overall))
	}

	var text strings.Builder
	if table, ok := metricsTable(rows, width); ok {
		text.WriteString(table)
	} else {
		text.WriteString(stackedMetrics(rows, width))
	}
	for _, line := range below {
		writeLines(&text, fill(strings.Fields(line), " ", width))
	}
	return text.String()
}

// metricsRow is a head's line of a table of metrics.
type metricsRow struct {
	task, head, examples, loss string
	metrics                    []string // fractions, in per cent
	errors                     []string // in the unit of the targets
}

// lossText formats a loss: with four decimals, and from 100 on with six digits, as one that diverges has many.
func lossText(loss float64) string {
	if math.Abs(loss) < 100 {
		return fmt.Sprintf("%.4f", loss)
	}
	return fmt.Sprintf("%.6g", loss)
}

// rowOf formats a head's metrics.
func rowOf(task string, head multitask.HeadMetrics) metricsRow {
	row := metricsRow{task: task, head: head.Head, examples: strconv.Itoa(head.Examples), loss: "-"}
	if head.Loss.Units > 0 {
		row.loss = lossText(head.Loss.Mean())
	}
	for _, m := range head.Metrics {
		switch {
		case m.Undefined && !m.Lower && len(row.metrics) < metricsShown:
			row.metrics = append(row.metrics, m.Name+" -")
		case m.Undefined && m.Lower:
			row.errors = append(row.errors, m.Name+" -")
		case m.Lower:
			row.errors = append(row.errors, fmt.Sprintf("%s %.4g", m.Name, m.Value))
		case len(row.metrics) < metricsShown:
			row.metrics = append(row.metrics, fmt.Sprintf("%s %.2f", m.Name, 100*m.Value))
		}
	}
	if len(head.Metrics) == 0 {
		row.metrics = []string{"no labels"}
	}
	return row
}

// gap separates columns, and items in a cell.
const gap = "  "

// metricsTable returns the rows as a table whose cells of metrics and errors are wrapped; ok is false if the width has
// no room for the longest of them.
func metricsTable(rows []metricsRow, width int) (table string, ok bool) {
	const metricsHeader, errorsHeader = "metrics in %", "errors, not in %"
	fixed := [][]string{{"task", "head", "examples", "loss"}}
	longest, together, alone := len(metricsHeader), 0, 0 // metric, a row's errors, error
	for _, r := range rows {
		fixed = append(fixed, []string{r.task, r.head, r.examples, r.loss})
		longest = max(longest, widestOf(r.metrics))
		if len(r.errors) > 0 {
			together = max(together, len(errorsHeader), utf8.RuneCountInString(strings.Join(r.errors, gap)))
			alone = max(alone, len(errorsHeader), widestOf(r.errors))
		}
	}

	// the room of metrics, with the errors of a row in one line if possible
	room, errorsRoom := 0, 0
	if width > 0 {
		left := width - len(gap) - widestOf(aligned(fixed))
		for _, errorsRoom = range []int{together, alone} {
			if room = left; errorsRoom > 0 {
				room -= len(gap) + errorsRoom
			}
			if room >= longest {
				break
			}
		}
		if room < longest {
			return "", false
		}
	}

	header := append(fixed[0], metricsHeader)
	if together > 0 {
		header = append(header, errorsHeader)
	}
	lines := [][]string{header}
	for i, r := range rows {
		metrics, errors := fill(r.metrics, gap, room), fill(r.errors, gap, errorsRoom)
		cells := fixed[i+1]
		for n := range max(1, len(metrics), len(errors)) {
			lines = append(lines, append(slices.Clone(cells), at(metrics, n), at(errors, n)))
			cells = make([]string, len(cells))
		}
	}
	var text strings.Builder
	writeLines(&text, aligned(lines))
	return text.String(), true
}

// stackedMetrics returns the rows for a terminal that is too narrow for a table: metrics are below their head.
func stackedMetrics(rows []metricsRow, width int) string {
	var text strings.Builder
	indented := func(items []string) {
		for _, line := range fill(items, gap, max(1, width-len(gap))) {
			fmt.Fprintln(&text, gap+line)
		}
	}
	for _, r := range rows {
		title := fmt.Sprintf("%s, %s: examples %s, loss %s, metrics in %%", r.task, r.head, r.examples, r.loss)
		writeLines(&text, fill(strings.Fields(title), " ", width))
		indented(r.metrics)
		if len(r.errors) > 0 {
			fmt.Fprintf(&text, "%s\n", " errors, not in %")
			indented(r.errors)
		}
	}
	return text.String()
}

// fill joins items to lines of at most room characters, at least one in each; a room of 0 has no limit.
func fill(items []string, between string, room int) []string {
	var lines []string
	for _, item := range items {
		last := len(lines) - 1
		if last >= 0 && (room == 0 || utf8.RuneCountInString(lines[last]+between+item) <= room) {
			lines[last] += between + item
			continue
		}
		lines = append(lines, item)
	}
	return lines
}

// aligned joins the cells of each row to a line, with the cells of a column at one place.
func aligned(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+len(gap)))
		}
		lines[r] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

func writeLines(text *strings.Builder, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(text, line)
	}
}

// at returns an item, "" beyond the last.
func at(items []string, i int) string {
	if i < len(items) {
		return items[i]
	}
	return ""
}

// widestOf returns the length of the longest text in characters.
func widestOf(texts []string) int {
	width := 0
	for _, text := range texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	return width
}
