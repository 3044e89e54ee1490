package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
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
	end(w io.Writer) error // after the last line
}

// jsonLines writes results as lines of JSON.
type jsonLines struct{ keep kept }

func (j jsonLines) write(w io.Writer, result any) error {
	switch r := result.(type) {
	case predicted:
		return writeLine(w, r.Prediction)
	case errorLine:
		return writeLine(w, predict.Prediction{Err: r.Err, Line: r.Number, Fields: j.keep.of(r.Fields)})
	}
	return writeLine(w, result)
}

func (jsonLines) end(io.Writer) error { return nil }

// table writes rows: the columns of the input, and predictions in those of the targets, in place of gold ones. Errors
// go to log.
type table struct {
	rows    rowWriter
	format  corpus.Format // of the output, with its Type
	columns []string      // of the input; nil: those of the first line
	text    string        // column of the text of plain lines
	words   string        // column of the words that texts are split into; "" if no target is a tag for each word
	targets []predict.TargetColumn
	keep    kept
	log     io.Writer
	always  bool // there are columns without a row too

	started bool
	pending []predicted     // lines that could not be read before the first that determines the columns
	byFirst bool            // the columns are those of the first line
	dropped map[string]bool // fields of other lines that have no column
}

func (t *table) write(w io.Writer, result any) error {
	p, ok := result.(predicted)
	if !ok {
		line := result.(errorLine).Line
		p = predicted{predict.Prediction{Err: line.Err, Line: line.Number, Fields: t.keep.of(line.Fields)}, line}
	}
	if p.Err != nil {
		fmt.Fprintln(t.log, p.Err)
	}
	if !t.started && !ok && t.columns == nil { // it may lack the text
		t.pending = append(t.pending, p)
		return nil
	}
	if p.line.Given == nil {
		p.line.Given = map[string]any{t.text: p.Text}
	}
	if err := t.start(w, p.line); err != nil {
		return err
	}
	return t.writeRow(w, p)
}

// end warns of fields that were left out, and writes the rows of an input of which no line could be read.
func (t *table) end(w io.Writer) error {
	if len(t.dropped) > 0 {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(t.dropped)) {
			names = append(names, strconv.Quote(name))
		}
		fmt.Fprintf(t.log, "warning: --format %s: fields that the first line does not have are left out: %s; jsonl "+
			"has them\n", t.format.Type, strings.Join(names, ", "))
	}
	if len(t.pending) == 0 && (t.started || !t.always) {
		return t.rows.end(w)
	}
	first := predict.Line{Given: map[string]any{t.text: nil}}
	if len(t.pending) > 0 && t.pending[0].line.Given != nil {
		first = t.pending[0].line
	}
	if err := t.start(w, first); err != nil {
		return err
	}
	return t.rows.end(w)
}

// start writes the header, with the columns of the first line, and the lines that wait for it, if none was written yet.
func (t *table) start(w io.Writer, first predict.Line) error {
	if t.started {
		return nil
	}
	t.started = true
	if err := t.begin(first); err != nil {
		return err
	}
	if err := t.rows.begin(w, t.columns); err != nil {
		return fmt.Errorf("--format %s: header: %w; want jsonl", t.format.Type, err)
	}
	for _, p := range t.pending {
		if err := t.writeRow(w, p); err != nil {
			return err
		}
	}
	t.pending = nil
	return nil
}

func (t *table) writeRow(w io.Writer, p predicted) error {
	if t.byFirst {
		t.fit(&p)
	}
	if err := t.rows.row(w, t.row(p)); err != nil {
		return fmt.Errorf("--format %s: line %d: %w; want jsonl", t.format.Type, p.Line, err)
	}
	return nil
}

// fit moves the text of a line to the column that the first line has for it, and notes the fields without a column.
func (t *table) fit(p *predicted) {
	const most = 20 // names in the warning
	given := maps.Clone(p.line.Given)
	if slices.Contains(t.columns, t.text) && given[t.text] == nil && p.Text != "" {
		given[t.text] = p.Text
		if p.line.Text != t.text {
			delete(given, p.line.Text)
		}
	}
	p.line.Given = given
	for name := range given {
		_, other := p.line.Fields[name]
		if kept := !other || t.keep.keeps(name); kept && !slices.Contains(t.columns, name) && len(t.dropped) < most {
			if t.dropped == nil {
				t.dropped = map[string]bool{}
			}
			t.dropped[name] = true
		}
	}
}

// byPosition reports whether the run's data is read by the positions of columns, which therefore all stay.
func (t *table) byPosition() bool { return t.format.NoHeader || len(t.format.Columns) > 0 }

// begin chooses the columns by the first line.
func (t *table) begin(first predict.Line) error {
	if t.byFirst = t.columns == nil && !t.byPosition(); t.byFirst {
		t.columns = slices.Sorted(maps.Keys(first.Given))
	}
	t.targets = predict.TargetsIn(t.columns, t.targets)
	if err := checkTargets(t.targets); err != nil {
		return err
	}
	t.warnOfGuesses()
	if t.byPosition() {
		t.beginByPosition()
		return nil
	}
	t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(name string) bool {
		_, other := first.Fields[name]
		return name == "" || name == "_" || other && !t.keep.keeps(name)
	})
	if t.byFirst && slices.Contains(t.columns, first.Text) {
		t.text = first.Text
	}
	if t.words != "" && first.Example != nil && first.Example.Words == nil && !slices.Contains(t.columns, t.words) {
		t.columns = append(t.columns, t.words)
	}
	for _, target := range t.targets {
		if !slices.Contains(t.columns, target.Column) {
			t.columns = append(t.columns, target.Column)
		}
	}
	return nil
}

// warnOfGuesses warns of columns that are replaced, and may have something else than targets.
func (t *table) warnOfGuesses() {
	for _, target := range t.targets {
		if !target.Guessed {
			continue
		}
		name, what := target.Column, "has its predictions"
		if target.Gold != "" {
			name, what = target.Gold, "is empty"
		}
		fmt.Fprintf(t.log, "warning: --format %s: task %q reads targets from column %q, which %s; rename the column "+
			"to keep what it has\n", t.format.Type, target.Task, name, what)
	}
}

// beginByPosition adds the columns of targets that the input lacks: at their positions if they are named by those.
func (t *table) beginByPosition() {
	for _, target := range t.targets {
		if at, err := strconv.Atoi(target.Column); err == nil && len(t.format.Columns) == 0 {
			for n := len(t.columns); n < at; n++ {
				t.columns = append(t.columns, strconv.Itoa(n+1))
			}
		}
	}
	for _, target := range t.targets {
		if !slices.Contains(t.columns, target.Column) {
			t.columns = append(t.columns, target.Column)
		}
	}
}

// row returns the cells of a prediction; nil for one without a value.
func (t *table) row(p predicted) []any {
	cells := make([]any, len(t.columns))
	for i, name := range t.columns {
		if _, other := p.line.Fields[name]; !other || t.keep.keeps(name) {
			cells[i] = p.line.Given[name]
		}
		if name == t.words && cells[i] == nil && p.Words != nil {
			words := make([]string, len(p.Words))
			for w, at := range p.Words {
				words[w] = p.Text[at.Start:at.End]
			}
			cells[i] = words
		}
	}
	for _, target := range t.targets {
		if at := slices.Index(t.columns, target.Gold); target.Gold != "" && at >= 0 {
			cells[at] = nil
		}
		value := p.Data[target.Task][target.Head]
		if value == nil { // the kind has no form in data files
			value = p.Tasks[target.Task][target.Head]
		}
		if p.Err != nil {
			value = nil
		}
		cells[slices.Index(t.columns, target.Column)] = value
	}
	return cells
}

// checkTargets returns an error if two heads have the same column.
func checkTargets(targets []predict.TargetColumn) error {
	taken := map[string]predict.TargetColumn{}
	for _, t := range targets {
		if other, twice := taken[t.Column]; twice {
			remedy := "--task chooses one task"
			if other.Task == t.Task {
				remedy = "want --format jsonl"
			}
			return fmt.Errorf("--format: column %q is that of task %q, head %q, and of task %q, head %q; %s", t.Column,
				other.Task, other.Head, t.Task, t.Head, remedy)
		}
		taken[t.Column] = t
	}
	return nil
}
