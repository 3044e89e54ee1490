package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

// predicted is a prediction and the line that it is for.
type predicted struct {
	predict.Prediction
	line predict.Line
}

// resultWriter writes the results for lines: each a predicted, or an errorLine for a line that could not be read.
type resultWriter interface {
	write(w io.Writer, result any) error
}

// jsonLines writes results as lines of JSON.
type jsonLines struct{}

func (jsonLines) write(w io.Writer, result any) error {
	if p, ok := result.(predicted); ok {
		return writeLine(w, p.Prediction)
	}
	return writeLine(w, result)
}

// table writes rows of csv or tsv: the columns of the input, and predictions in those that the run's data has for
// targets. Errors go to log.
type table struct {
	delimiter rune
	columns   []string // of the input; nil: those of the first line
	text      string   // column of the text of plain lines
	words     string   // column of the words that texts are split into; "" if no target is a tag for each word
	targets   []predict.TargetColumn
	keep      kept
	log       io.Writer

	started bool
}

func (t *table) write(w io.Writer, result any) error {
	p, ok := result.(predicted)
	if !ok {
		_, err := fmt.Fprintln(t.log, result.(errorLine).Error) // there is no row to write
		return err
	}
	if p.line.Given == nil {
		p.line.Given = map[string]any{t.text: p.Text}
	}
	rows := csv.NewWriter(w)
	rows.Comma = t.delimiter
	if !t.started {
		t.started = true
		t.begin(p.line)
		if err := rows.Write(t.columns); err != nil {
			return err
		}
	}
	if p.Err != nil {
		fmt.Fprintln(t.log, p.Err)
	}
	if err := rows.Write(t.row(p)); err != nil {
		return err
	}
	rows.Flush()
	return rows.Error()
}

// begin chooses the columns by the first line.
func (t *table) begin(first predict.Line) {
	if t.columns == nil {
		t.columns = slices.Sorted(maps.Keys(first.Given))
	}
	t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(name string) bool {
		_, other := first.Fields[name]
		return name == "" || name == "_" || other && !t.keep.keeps(name)
	})
	if t.words != "" && first.Example != nil && first.Example.Words == nil && !slices.Contains(t.columns, t.words) {
		t.columns = append(t.columns, t.words)
	}
	for _, target := range t.targets {
		if !slices.Contains(t.columns, target.Column) {
			t.columns = append(t.columns, target.Column)
		}
	}
}

// row returns the cells of a prediction.
func (t *table) row(p predicted) []string {
	cells := make([]string, len(t.columns))
	for i, name := range t.columns {
		cells[i] = cell(p.line.Given[name])
		if name == t.words && cells[i] == "" && p.Words != nil {
			words := make([]string, len(p.Words))
			for w, at := range p.Words {
				words[w] = p.Text[at.Start:at.End]
			}
			cells[i] = cell(words)
		}
	}
	for _, target := range t.targets {
		value := p.Data[target.Task][target.Head]
		if value == nil { // the kind has no form in data files
			value = p.Tasks[target.Task][target.Head]
		}
		if p.Err != nil {
			value = nil
		}
		cells[slices.Index(t.columns, target.Column)] = cell(value)
	}
	return cells
}

// cell writes a value as data files have it: lists and objects as JSON.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("cli: " + err.Error()) // values come from JSON, or from an output kind
	}
	return string(text)
}

// checkTargets returns an error if two heads have the same column.
func checkTargets(targets []predict.TargetColumn) error {
	taken := map[string]predict.TargetColumn{}
	for _, t := range targets {
		if other, twice := taken[t.Column]; twice {
			return fmt.Errorf("--format: column %q is that of task %q, head %q, and of task %q, head %q; --task "+
				"chooses one task", t.Column, other.Task, other.Head, t.Task, t.Head)
		}
		taken[t.Column] = t
	}
	return nil
}
