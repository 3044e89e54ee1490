package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/predict"
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

// rowWriter writes the rows of a table. A cell is nil, a field of a record, or what an output kind has in data files.
type rowWriter interface {
	begin(w io.Writer, columns []string) error
	row(w io.Writer, cells []any) error
	end(w io.Writer) error // after the last row, also if there was none
}

// textRows writes csv or tsv.
type textRows struct{ format corpus.Format }

func (t textRows) begin(w io.Writer, columns []string) error {
	if t.format.NoHeader {
		return nil
	}
	return t.format.WriteRow(w, columns)
}

func (t textRows) row(w io.Writer, cells []any) error {
	texts := make([]string, len(cells))
	for i, value := range cells {
		texts[i] = cell(value)
	}
	return t.format.WriteRow(w, texts)
}

func (textRows) end(io.Writer) error { return nil }

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

// parquetRows writes a parquet file in the end, when the types of its columns are known. Until then the rows are in a
// temporary file, as lines of JSON.
type parquetRows struct {
	columns []string
	waiting *os.File
}

func newParquetRows() (*parquetRows, error) {
	waiting, err := os.CreateTemp("", "jenga-*.jsonl")
	return &parquetRows{waiting: waiting}, err
}

// close removes the temporary file.
func (p *parquetRows) close() error {
	return errors.Join(p.waiting.Close(), os.Remove(p.waiting.Name()))
}

func (p *parquetRows) begin(_ io.Writer, columns []string) error {
	p.columns = columns
	return nil
}

func (p *parquetRows) row(_ io.Writer, cells []any) error { return writeLine(p.waiting, cells) }

func (p *parquetRows) end(w io.Writer) error { return corpus.WriteParquet(w, p.columns, p.each) }

// each calls row for the rows so far.
func (p *parquetRows) each(row func(cells []any) error) error {
	if _, err := p.waiting.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := json.NewDecoder(p.waiting)
	lines.UseNumber()
	for {
		var cells []any
		err := lines.Decode(&cells)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := row(cells); err != nil {
			return err
		}
	}
}

// sentences writes a line for each word, as conll or conllu: the lines of an input of the same format with the
// predicted tags in the columns of the targets, else lines of its own. A word without a tag has _. Errors go to log.
type sentences struct {
	conllu  bool
	source  *bufio.Reader // the input's lines; nil for another format
	format  corpus.Format // of source
	targets []predict.TargetColumn
	log     io.Writer
}

// newSentences returns a writer for the targets that are a tag for each word. The caller closes it with done.
func newSentences(format string, from textInput, targets []predict.TargetColumn, log io.Writer) (s *sentences,
	done func() error, err error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t predict.TargetColumn) bool { return !t.PerWord })
	s = &sentences{conllu: format == "conllu", format: from.format, targets: targets, log: log}
	done = func() error { return nil }
	switch {
	case len(targets) == 0:
		return nil, nil, fmt.Errorf("--format %s: no task predicts a tag for each word; want jsonl or csv", format)
	case checkTargets(targets) != nil:
		return nil, nil, checkTargets(targets)
	case corpus.FileType(from.file) != format:
		return s, done, nil
	case !from.format.IsUTF8():
		return nil, nil, fmt.Errorf("--format %s: it copies the lines of the input, whose encoding is %s, and the "+
			"output is UTF-8; want jsonl, csv or tsv, or data in UTF-8", format, from.format.Encoding)
	}
	in, done, err := openLines(from.file)
	if err != nil {
		return nil, nil, err
	}
	s.source = bufio.NewReader(in)
	if mark, _ := s.source.Peek(3); string(mark) == "\ufeff" {
		s.source.Discard(3)
	}
	return s, done, nil
}

func (s *sentences) write(w io.Writer, result any) error {
	p, ok := result.(predicted)
	if !ok {
		p.Err = result.(errorLine).Err
	}
	if p.Err != nil {
		fmt.Fprintln(s.log, p.Err)
		p.Data = nil
	}
	switch {
	case s.source != nil:
		return s.rewrite(w, p)
	case !ok: // there are no words
		return nil
	}
	for i, word := range p.Words {
		text := p.Text[word.Start:word.End]
		if strings.ContainsAny(text, "\t\r\n") {
			return fmt.Errorf("line %d: word %q has a tab or a line end, which conll cannot hold; want jsonl", p.Line,
				text)
		}
		cells := []string{text}
		if s.conllu {
			cells = []string{strconv.Itoa(i + 1), text, "_", "_", "_", "_", "_", "_", "_", "_"}
		}
		if err := s.setTags(&cells, p, i); err != nil {
			return err
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (*sentences) end(io.Writer) error { return nil }

// rewrite copies a sentence of the source with its predicted tags. With an error it has none: each is _.
func (s *sentences) rewrite(w io.Writer, p predicted) error {
	for words := 0; ; {
		line, err := s.source.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		ended := err != nil
		line = strings.TrimRight(line, "\r\n")
		blank := strings.Trim(line, " \t") == ""
		if cells, delimiter := s.cells(line); cells != nil && !blank {
			if err := s.setTags(&cells, p, words); err != nil {
				return err
			}
			line = strings.Join(cells, delimiter)
			words++
		}
		if !ended || line != "" {
			fmt.Fprintln(w, line)
		}
		if ended && !blank {
			fmt.Fprintln(w)
		}
		if ended || blank && words > 0 {
			return nil
		}
	}
}

// cells returns the columns of a line that is a word, nil for another one, and what separates them.
func (s *sentences) cells(line string) (cells []string, delimiter string) {
	delimiter = "\t"
	switch given := s.format.Delimiter; {
	case s.conllu:
	case strings.Trim(given, " ") != "":
		delimiter = given
	case given != "" || !strings.Contains(line, "\t"):
		cells, delimiter = strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }), " "
	}
	if cells == nil {
		cells = strings.Split(line, delimiter)
	}
	if len(cells) == 0 || cells[0] == "-DOCSTART-" || s.conllu && strings.Trim(cells[0], "0123456789") != "" {
		return nil, ""
	}
	return cells, delimiter
}

// setTags sets the tags of word number i in its columns.
func (s *sentences) setTags(cells *[]string, p predicted, i int) error {
	for _, target := range s.targets {
		at, err := s.column(target, *cells)
		if err != nil {
			return err
		}
		if at == len(*cells) {
			*cells = append(*cells, "_")
		}
		(*cells)[at] = "_"
		switch tags := p.Data[target.Task][target.Head].(type) {
		case []string:
			if i < len(tags) {
				(*cells)[at] = tags[i]
			}
		case []*string:
			if i < len(tags) && tags[i] != nil {
				(*cells)[at] = *tags[i]
			}
		}
	}
	return nil
}

// conlluColumns are the columns of a CoNLL-U file.
var conlluColumns = []string{"id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"}

// column returns the index of a target's column among the cells of a word; their number for one that is to be added.
func (s *sentences) column(t predict.TargetColumn, cells []string) (int, error) {
	names := s.format.Columns
	switch {
	case s.conllu && t.Column == "tags":
		return slices.Index(conlluColumns, "upos"), nil
	case s.conllu:
		names = conlluColumns
	case s.source == nil, len(names) == 0 && t.Column == "tags" && len(cells) == 1:
		return len(cells), nil // after the word
	case len(names) == 0 && t.Column == "tags":
		return len(cells) - 1, nil
	case len(names) == 0:
		names = make([]string, len(cells))
		for i := range names {
			names[i] = strconv.Itoa(i + 1)
		}
	}
	if at := slices.Index(names, t.Column); at >= 0 && at < len(cells) {
		return at, nil
	}
	return 0, fmt.Errorf("--format: task %q has its tags in the column %q, which a word here does not have; want "+
		"jsonl or csv", t.Task, t.Column)
}
