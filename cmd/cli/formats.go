package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/predict"
)

type jsonLines[T any] struct{ keep passedFields }

func (j jsonLines[T]) write(w io.Writer, line inputs.Line, result T) error {
	if line.Err != nil {
		return writeLine(w, predict.Prediction{Err: line.Err, Line: line.Number, Fields: j.keep.choose(line.Fields)})
	}
	return writeLine(w, result)
}

func (jsonLines[T]) end(io.Writer) error { return nil }

// shown returns an output that escapes what a terminal obeys if stdout is a terminal, else the output as it is.
func (c *commands) shown(output lineOutput[predict.Prediction]) lineOutput[predict.Prediction] {
	if isTerminal(c.out) {
		return escaped{output}
	}
	return output
}

type escaped struct {
	raw lineOutput[predict.Prediction]
}

func (e escaped) write(w io.Writer, line inputs.Line, p predict.Prediction) error {
	return e.raw.write(printable.Writer{Raw: w}, line, p)
}

func (e escaped) end(w io.Writer) error { return e.raw.end(printable.Writer{Raw: w}) }

type predicted struct {
	predict.Prediction
	line inputs.Line
}

// table writes rows: the columns of the input, and predictions in those of the targets, in place of gold ones. Errors
// go to log.
type table struct {
	rows    *corpus.TableWriter // nil before the first line
	format  corpus.Format       // of the output, with its Type
	columns []string            // of the input; nil: those of the first line
	text    string              // column of the text of plain lines
	words   string              // column of the words that texts are split into; "" if no target is a tag for each word
	targets []inputs.TargetColumn
	keep    passedFields
	log     io.Writer

	pending []predicted     // lines that could not be read before the first that determines the columns
	byFirst bool            // the columns are those of the first line
	dropped map[string]bool // fields of other lines that have no column
}

func (t *table) write(w io.Writer, line inputs.Line, prediction predict.Prediction) error {
	p := predicted{prediction, line}
	if line.Err != nil {
		fmt.Fprintln(t.log, line.Err)
	}
	if line.Example == nil {
		p.Prediction = predict.Prediction{Err: line.Err, Line: line.Number, Fields: t.keep.choose(line.Fields)}
		if t.rows == nil && t.columns == nil { // it may lack the text
			t.pending = append(t.pending, p)
			return nil
		}
	}
	if p.line.Given == nil {
		p.line.Given = map[string]any{t.text: p.Text}
	}
	if err := t.start(w, p.line); err != nil {
		return err
	}
	return t.writeRow(p)
}

// end warns of fields that were left out, and writes the rows of an input of which no line could be read.
func (t *table) end(w io.Writer) error {
	if len(t.dropped) > 0 {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(t.dropped)) {
			names = append(names, strconv.Quote(name))
		}
		fmt.Fprintln(t.log, warning("--format %s: fields that the first line does not have are left out: %s; jsonl "+
			"has them", t.format.Type, strings.Join(names, ", ")))
	}
	switch started := t.rows != nil; {
	case started:
		return t.rows.End()
	case len(t.pending) == 0 && t.format.Type != "parquet": // which has columns without a row too
		return nil
	}
	first := inputs.Line{Given: map[string]any{t.text: nil}}
	if len(t.pending) > 0 && t.pending[0].line.Given != nil {
		first = t.pending[0].line
	}
	if err := t.start(w, first); err != nil {
		return err
	}
	return t.rows.End()
}

func (t *table) close() error {
	if t.rows == nil {
		return nil
	}
	return t.rows.Close()
}

// start writes the header, with the columns of the first line, and the lines that wait for it, if none was written yet.
func (t *table) start(w io.Writer, first inputs.Line) error {
	if t.rows != nil {
		return nil
	}
	if err := t.begin(first); err != nil {
		return err
	}
	var err error
	if t.rows, err = corpus.NewTableWriter(w, t.format, t.columns); err != nil {
		return fmt.Errorf("--format %s: header: %w", t.format.Type, wantLines(err))
	}
	for _, p := range t.pending {
		if err := t.writeRow(p); err != nil {
			return err
		}
	}
	t.pending = nil
	return nil
}

func (t *table) writeRow(p predicted) error {
	if t.byFirst {
		t.fit(&p)
	}
	for _, target := range t.targets {
		label, _ := p.Data[target.Task][target.Head].(string)
		if t.format.Type != "parquet" && strings.Contains(label, "\r\n") {
			return fmt.Errorf("--format %s: line %d: label %q has a line end of two characters, which is read as one; "+
				"want jsonl or parquet", t.format.Type, p.Line, label)
		}
	}
	for _, row := range t.inRows(t.row(p)) {
		if err := t.rows.Write(row); err != nil {
			return fmt.Errorf("--format %s: line %d: %w", t.format.Type, p.Line, wantLines(err))
		}
	}
	return nil
}

// inRows returns the row of a text, or where the input has a word a row those of its words: the values of lists.
func (t *table) inRows(row []any) [][]any {
	if t.format.Sentence == "" {
		return [][]any{row}
	}
	n := 1
	for _, cell := range row {
		n = max(n, len(listOf(cell)))
	}
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = slices.Clone(row)
		for column, cell := range row {
			if list := listOf(cell); i < len(list) {
				rows[i][column] = list[i]
			} else if list != nil {
				rows[i][column] = nil
			}
		}
	}
	return rows
}

// listOf returns the values of a list, as a record or a prediction has it; nil for what is none.
func listOf(cell any) (list []any) {
	switch v := cell.(type) {
	case []any:
		return v
	case []string:
		for _, text := range v {
			list = append(list, text)
		}
	case []*string:
		for _, text := range v {
			if list = append(list, nil); text != nil {
				list[len(list)-1] = *text
			}
		}
	}
	return list
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
		if kept := !other || t.keep.has(name); kept && !slices.Contains(t.columns, name) && len(t.dropped) < most {
			t.dropped[name] = true
		}
	}
}

// byPosition reports whether the run's data is read by the positions of columns, which therefore all stay.
func (t *table) byPosition() bool { return t.format.NoHeader || len(t.format.Columns) > 0 }

// begin chooses the columns by the first line.
func (t *table) begin(first inputs.Line) error {
	if t.byFirst = t.columns == nil && !t.byPosition(); t.byFirst {
		t.columns = slices.Sorted(maps.Keys(first.Given))
	}
	t.targets = inputs.TargetsIn(t.columns, t.targets)
	if err := checkTargets(t.targets); err != nil {
		return err
	}
	t.warnOfGuesses()
	if t.byPosition() {
		for _, target := range t.targets { // that are named by their positions
			if at, err := strconv.Atoi(target.Column); err == nil && len(t.format.Columns) == 0 {
				for n := len(t.columns); n < at; n++ {
					t.columns = append(t.columns, strconv.Itoa(n+1))
				}
			}
		}
	} else {
		t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(name string) bool {
			_, other := first.Fields[name]
			return name == "" || name == "_" || other && !t.keep.has(name)
		})
		if t.byFirst && slices.Contains(t.columns, first.Text) {
			t.text = first.Text
		}
		if t.words != "" && first.Example != nil && first.Example.Words == nil && !slices.Contains(t.columns, t.words) {
			t.columns = append(t.columns, t.words)
		}
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
		fmt.Fprintln(t.log, warning("--format %s: task %q reads targets from column %q, which %s; rename the column "+
			"to keep what it has", t.format.Type, target.Task, name, what))
	}
}

// row returns the cells of a prediction; nil for one without a value.
func (t *table) row(p predicted) []any {
	cells := make([]any, len(t.columns))
	for i, name := range t.columns {
		if _, other := p.line.Fields[name]; !other || t.keep.has(name) {
			cells[i] = p.line.Given[name]
		}
		if name == t.words && cells[i] == nil && p.Words != nil {
			cells[i] = wordsOf(p.Prediction)
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

func wordsOf(p predict.Prediction) []string {
	words := make([]string, len(p.Words))
	for i, at := range p.Words {
		words[i] = p.Text[at.Start:at.End]
	}
	return words
}

// checkTargets returns an error if two heads have the same column.
func checkTargets(targets []inputs.TargetColumn) error {
	taken := map[string]inputs.TargetColumn{}
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

// sentences writes a line for each word, as conll or conllu: the lines of an input of the same format with the
// predicted tags in the columns of the targets, else lines of its own. Errors go to log.
type sentences struct {
	*corpus.SentenceWriter
	targets []inputs.TargetColumn
	log     io.Writer
}

// newSentences returns a writer for the targets that are a tag for each word. The caller closes it with done.
func newSentences(format string, from textInput, targets []inputs.TargetColumn, log io.Writer) (s *sentences,
	done func() error, err error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t inputs.TargetColumn) bool { return !t.PerWord })
	if len(targets) == 0 {
		return nil, nil, fmt.Errorf("--format %s: no task predicts a tag for each word; want jsonl, csv, tsv or "+
			"parquet", format)
	}
	if err := checkTargets(targets); err != nil {
		return nil, nil, err
	}
	columns := make([]string, len(targets))
	for i, target := range targets {
		columns[i] = target.Column
	}
	form, source := corpus.Format{}, ""
	if from.kind() == format {
		form, source = from.format, from.file
	}
	if !form.IsUTF8() {
		return nil, nil, fmt.Errorf("--format %s: it copies the lines of the input, whose encoding is %s, and the "+
			"output is UTF-8; want jsonl, csv or tsv, or data in UTF-8", format, form.Encoding)
	}
	form.Type, form.Comments = format, cmp.Or(form.Comments, from.marked)
	blanks := slices.ContainsFunc(targets, func(t inputs.TargetColumn) bool { return t.Blanks })
	w, err := corpus.NewSentenceWriter(form, columns, source, blanks)
	if err != nil {
		return nil, nil, err
	}
	return &sentences{w, targets, log}, w.Close, nil
}

func (s *sentences) write(w io.Writer, line inputs.Line, p predict.Prediction) error {
	if line.Err != nil {
		fmt.Fprintln(s.log, line.Err)
		p.Data = nil
	}
	if line.Example == nil && !s.Copies() { // there are no words
		return nil
	}
	tags := make([][]string, len(s.targets))
	for i, target := range s.targets {
		tags[i] = tagsOf(p.Data[target.Task][target.Head])
	}
	err := s.Write(w, wordsOf(p), tags)
	if missing, ok := errors.AsType[*corpus.NoColumnError](err); ok {
		task := slices.IndexFunc(s.targets, func(t inputs.TargetColumn) bool { return t.Column == missing.Column })
		return fmt.Errorf("--format: task %q has its tags in the column %q, which a word here does not have; want "+
			"jsonl or csv", s.targets[task].Task, missing.Column)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", line.Number, wantLines(err))
	}
	return nil
}

// tagsOf returns the tags of a prediction as data files have them, "" for a word without one.
func tagsOf(data any) []string {
	tags, _ := data.([]string)
	some, _ := data.([]*string)
	for _, tag := range some {
		if tag == nil {
			tags = append(tags, "")
		} else {
			tags = append(tags, *tag)
		}
	}
	return tags
}

func (*sentences) end(io.Writer) error { return nil }

// wantLines adds the format that holds all values to an error of a value that another does not hold. A full disk holds
// none.
func wantLines(err error) error {
	if _, ofFile := errors.AsType[*fs.PathError](err); ofFile {
		return err
	}
	return fmt.Errorf("%w; want jsonl", err)
}
