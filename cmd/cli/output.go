package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
)

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

// warn writes a run's warnings, a line each.
func (c *commands) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.log, warning)
	}
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
					fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%d\t%s\n", label, fractionText(s.Precision, s.Predicted > 0),
						fractionText(s.Recall, s.Support > 0), 100*s.F1, s.Support,
						confusedWith(label, head.Tables.Confusion[label]))
				}
				table.Flush()
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// fractionText formats a fraction in per cent, "-" if it is undefined.
func fractionText(fraction float64, defined bool) string {
	if !defined {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100*fraction)
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

// kept chooses the fields of the input that pass through to the output.
type kept struct {
	all   bool
	names []string
	found map[string]bool // of names
}

// newKept reads the flag --keep.
func newKept(flag string) kept {
	switch flag {
	case "all":
		return kept{all: true}
	case "none":
		return kept{}
	}
	return kept{names: strings.Split(flag, ","), found: map[string]bool{}}
}

// keeps reports whether the field with a name passes through.
func (k kept) keeps(name string) bool { return k.all || slices.Contains(k.names, name) }

// of returns the fields that pass through, under the names of --keep, which may be paths into JSON.
func (k kept) of(fields map[string]any) map[string]any {
	if k.all {
		return fields
	}
	chosen := map[string]any{}
	for _, name := range k.names {
		if value, ok := corpus.Field(fields, name); ok {
			chosen[name], k.found[name] = value, true
		}
	}
	return chosen
}

// warnings lists the names that no line had.
func (k kept) warnings() []string {
	var all []string
	for _, name := range k.names {
		if !k.found[name] {
			all = append(all, fmt.Sprintf("warning: --keep: no line has a field %q besides its text", name))
		}
	}
	return all
}
