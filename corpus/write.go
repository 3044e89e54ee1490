package corpus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// TableWriter writes rows of named columns as a csv, tsv or parquet file, which Open reads. A command that predicts
// makes one at the first row, when it knows the columns, calls Write for each row and End after the last one, and Close
// in any case. Columns of a parquet file are texts, integers, numbers, true and false, or lists of these; one of other
// values, or of several types, has JSON as text.
type TableWriter struct {
	out     io.Writer
	format  Format // settled
	columns []string
	waiting *os.File // the rows of a parquet file as lines of JSON, until the types of its columns are known
	types   []parquetType
}

// NewTableWriter writes the header of a file of format f, whose Type is csv, tsv or parquet.
func NewTableWriter(out io.Writer, f Format, columns []string) (*TableWriter, error) {
	f, err := f.settled("", false)
	if err != nil {
		return nil, err
	}
	t := &TableWriter{out: out, format: f, columns: columns, types: make([]parquetType, len(columns))}
	switch {
	case f.Type == "parquet":
		t.waiting, err = os.CreateTemp("", "jenga-*.jsonl")
	case !f.NoHeader:
		err = f.writeRow(out, columns)
	}
	return t, err
}

// Write writes a row. A cell is nil, a field of a record, or another value that JSON can have: in csv and tsv, lists
// and objects are written as JSON. It returns an error for a cell that a csv or tsv file without quotes cannot hold.
func (t *TableWriter) Write(cells []any) error {
	if t.waiting != nil {
		return t.wait(cells)
	}
	texts := make([]string, len(cells))
	for i, value := range cells {
		text, isText := value.(string)
		if !isText && value != nil {
			written, err := json.Marshal(value)
			if err != nil {
				return err
			}
			text = string(written)
		}
		texts[i] = text
	}
	return t.format.writeRow(t.out, texts)
}

func (t *TableWriter) wait(cells []any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cells); err != nil {
		return err
	}
	var row []any
	if _, err := unmarshal(line.Bytes(), &row, "the row"); err != nil {
		return err
	}
	for i, cell := range row {
		t.types[i] = t.types[i].with(cell)
	}
	_, err := t.waiting.Write(line.Bytes())
	return err
}

// End ends the file: it writes the rows of a parquet file.
func (t *TableWriter) End() error {
	if t.waiting == nil {
		return nil
	}
	schema, err := parquetSchema(t.columns, t.types)
	if err != nil {
		return err
	}
	if _, err := t.waiting.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := json.NewDecoder(t.waiting)
	lines.UseNumber()
	const together = 1 << 16 // rows of a row group, which is in memory
	out := parquet.NewWriter(t.out, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(together))
	row := parquet.Row{}
	for {
		var cells []any
		if err := lines.Decode(&cells); errors.Is(err, io.EOF) {
			return out.Close()
		} else if err != nil {
			return err
		}
		row = row[:0]
		for i, cell := range cells {
			row = t.types[i].appendTo(row, i, cell)
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
}

// Close removes the temporary file of a parquet file's rows.
func (t *TableWriter) Close() error {
	if t.waiting == nil {
		return nil
	}
	return errors.Join(t.waiting.Close(), os.Remove(t.waiting.Name()))
}

// writeRow writes a row of a csv or tsv file, so that reading it returns the same cells. Cells are quoted where they
// must be. It returns an error for cells that a file without quotes cannot hold.
func (f Format) writeRow(w io.Writer, cells []string) error {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch {
		case f.quoted() && (f.needsQuotes(cell, len(cells)) || i == 0 && f.beginsComment(cell)):
			row[i] = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		case !f.quoted() && !f.holds(cell, i == len(cells)-1):
			return fmt.Errorf("cell %q cannot be written without quotes, with the delimiter %q", start(cell),
				f.Delimiter)
		default:
			row[i] = cell
		}
	}
	if !f.quoted() && !slices.ContainsFunc(row, func(cell string) bool { return cell != "" }) && len(row) == 1 {
		return fmt.Errorf("a row of one empty cell cannot be written without quotes")
	}
	line := strings.Join(row, f.Delimiter)
	if f.isComment(line) {
		return fmt.Errorf("a row that begins with %q is a comment, by comments: %[1]q; it cannot be written without "+
			"quotes", f.Comments)
	}
	_, err := io.WriteString(w, line+"\n")
	return err
}

// delimited reports whether the delimiter would end a cell before its end, or a character early, as "||" after "a|".
func (f Format) delimited(cell string) bool {
	return strings.Index(cell+f.Delimiter, f.Delimiter) < len(cell)
}

// beginsComment reports whether a row that begins with a cell may be a comment.
func (f Format) beginsComment(cell string) bool {
	return f.isComment(cell) || f.Comments != "" && strings.HasPrefix(f.Comments, cell)
}

// needsQuotes reports whether a cell of a row of n cells is to be quoted. As encoding/csv, it quotes white
// space at the beginning too.
func (f Format) needsQuotes(cell string, n int) bool {
	first, _ := utf8.DecodeRuneInString(cell)
	return f.delimited(cell) || strings.ContainsAny(cell, "\"\r\n") || unicode.IsSpace(first) ||
		strings.HasPrefix(cell, byteOrderMark) || cell == "" && n == 1
}

// holds reports whether a cell can be read from a row without quotes. Of rows that blanks separate, only the last cell
// may have blanks, and none may be empty.
func (f Format) holds(cell string, last bool) bool {
	switch {
	case strings.ContainsAny(cell, "\r\n"), strings.HasPrefix(cell, byteOrderMark):
		return false
	case f.blank() && last:
		return cell != "" && !strings.HasPrefix(cell, " ")
	case f.blank():
		return cell != "" && !strings.Contains(cell, " ")
	}
	return !f.delimited(cell)
}

// unpadded returns the rest of a line without the blanks before a quoted cell, of which all is in the line: the quotes
// are letters where something else follows them.
func (f Format) unpadded(rest string) string {
	bare := strings.TrimLeft(rest, " ")
	if bare == rest || !strings.HasPrefix(bare, `"`) || strings.HasPrefix(f.Delimiter, " ") {
		return rest
	}
	for after, closed := bare[1:], true; closed; {
		if _, after, closed = strings.Cut(after, `"`); closed && f.endsCell(after) {
			return bare
		}
		if !strings.HasPrefix(after, `"`) {
			break
		}
		after = after[1:]
	}
	return rest
}

// endsCell reports whether nothing but blanks is between a closing quote and the end of its cell.
func (f Format) endsCell(after string) bool {
	bare := strings.TrimLeft(after, " ")
	return bare == "" || strings.HasPrefix(bare, f.Delimiter) || strings.HasPrefix(after, f.Delimiter)
}

// SentenceWriter writes a conll or conllu file, which Open reads: a line for each word, with columns of which some are
// set, and an empty line after each sentence. A command that predicts tags makes one with the columns that they have in
// the run's data.
type SentenceWriter struct {
	format  Format // settled, of the source if there is one
	columns []string
	source  *bufio.Reader // nil: sentences of its own
	file    io.Closer

	separator string // of the source's columns; "" before its first word
	joint     string // between the columns that are written
	blanks    bool   // a value may have a blank
}

// NewSentenceWriter returns the writer of a file of format f, conll or conllu, with the columns of the given names;
// "tags" is the one that Open reads tags from. If path names a file, of this format and in UTF-8, its lines are copied,
// but for these columns; it is "" for sentences of words alone.
//
// Where blanks separate the file's columns and a value may have a blank, tabs separate those that are written.
func NewSentenceWriter(f Format, columns []string, path string, blanks bool) (*SentenceWriter, error) {
	f, err := f.settled(path, false)
	if err != nil || path == "" {
		joint := "\t"
		if f.Comments != "" && !blanks {
			joint = " " // a word that begins as a comment can have a blank before it
		}
		return &SentenceWriter{format: f, columns: columns, joint: joint}, err
	}
	file, err := openRegular(path, "its lines are read again, to be copied; predictions in jsonl read a pipe")
	if err != nil {
		return nil, err
	}
	s := &SentenceWriter{format: f, columns: columns, source: bufio.NewReaderSize(file, sampleSize), file: file,
		blanks: blanks}
	if strings.HasSuffix(path, ".gz") {
		s.source = bufio.NewReaderSize(Decompress(path, file), sampleSize)
	}
	if mark, _ := s.source.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		s.source.Discard(len(byteOrderMark))
	}
	return s, nil
}

// separate finds what separates the columns of the source, from the line of its first word on.
func (s *SentenceWriter) separate(line string) {
	sample, _ := s.source.Peek(sampleSize)
	words, others := s.format.wordLines(line+"\n", string(sample))
	if len(words) == 0 {
		words = others
	}
	s.separator = s.format.separator(words)
	s.joint = s.separator
	switch {
	case s.separator == " " && s.blanks:
		s.joint = "\t"
	case s.separator == anyBlank:
		s.joint = " "
	}
}

// Close closes the file whose lines are copied.
func (s *SentenceWriter) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Copies reports whether the lines of a file are copied, each of whose sentences must be written, in order.
func (s *SentenceWriter) Copies() bool { return s.source != nil }

// Write writes the next sentence: the next of the source, or words. values has the values of each column, one for each
// word; where they lack one, or it is "", the word has _.
func (s *SentenceWriter) Write(w io.Writer, words []string, values [][]string) error {
	if s.source != nil {
		return s.copy(w, values)
	}
	for i, word := range words {
		if err := s.holds("word", word); err != nil {
			return err
		}
		if word == "-DOCSTART-" && s.format.Type == "conll" || strings.HasPrefix(word, byteOrderMark) {
			return fmt.Errorf("word %q, which %s skips at the beginning of a line", word, s.format.Type)
		}
		cells := []string{word}
		if s.format.Type == "conllu" {
			cells = slices.Repeat([]string{"_"}, len(conlluColumns))
			cells[0], cells[1] = strconv.Itoa(i+1), word
		}
		cells, err := s.set(cells, values, i)
		if err != nil {
			return err
		}
		line, err := s.line(cells)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, line)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (s *SentenceWriter) copy(w io.Writer, values [][]string) error {
	for words := 0; ; {
		line, err := s.source.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		ended := err != nil
		line = unmarked(strings.TrimRight(line, "\r\n"))
		blank := strings.Trim(line, " \t") == ""
		word := !blank && !s.format.isComment(line)
		if word && s.separator == "" && s.format.isWord(splitBlanks(line)) {
			s.separate(line)
		}
		if cells := wordCells(line, s.separator); word && s.separator != "" && s.format.isWord(cells) {
			if cells, err = s.set(cells, values, words); err != nil {
				return err
			}
			if line, err = s.line(cells); err != nil {
				return err
			}
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

// line returns the line of a word, which must not be read as a comment.
func (s *SentenceWriter) line(cells []string) (string, error) {
	line := strings.Join(cells, s.joint)
	switch {
	case s.format.Type != "conll" || !s.format.isComment(line):
		return line, nil
	case s.joint == " ":
		return " " + line, nil
	}
	return "", fmt.Errorf("word %q begins a comment, by comments: %q, where tabs separate the columns; want --format "+
		"jsonl", start(cells[0]), s.format.Comments)
}

func (s *SentenceWriter) set(cells []string, values [][]string, word int) ([]string, error) {
	for i, name := range s.columns {
		at := s.columnIn(cells, name)
		if at < 0 {
			return nil, &NoColumnError{name}
		}
		if at == len(cells) {
			cells = append(cells, "")
		}
		cells[at] = "_"
		if i < len(values) && word < len(values[i]) && values[i][word] != "" {
			cells[at] = values[i][word]
			if err := s.holds("tag", cells[at]); err != nil {
				return nil, err
			}
		}
	}
	return cells, nil
}

// holds returns an error for a cell that would not be read as it is.
func (s *SentenceWriter) holds(what, cell string) error {
	separators, name := s.joint, fmt.Sprintf("%q", s.joint)
	switch s.joint {
	case " ":
		separators, name = " \t", "blanks"
	case "\t":
		name = "tabs"
	}
	switch {
	case strings.ContainsAny(cell, "\r\n"):
		return fmt.Errorf("%s %q has a line end, which %s cannot hold", what, start(cell), s.format.Type)
	case separators == " \t" && strings.ContainsAny(cell, separators),
		strings.Contains(cell+separators, separators) && strings.Index(cell+separators, separators) < len(cell):
		return fmt.Errorf("%s %q has what separates the columns, %s", what, start(cell), name)
	case what == "tag" && cell == "_" && s.format.Type == "conllu":
		return fmt.Errorf("%s %q, which is a missing value in %s", what, cell, s.format.Type)
	}
	return nil
}

// NoColumnError is the error of a SentenceWriter for a word of its source that has no column of a name.
type NoColumnError struct{ Column string }

func (e *NoColumnError) Error() string { return fmt.Sprintf("a word has no column %q", e.Column) }

// columnIn returns the index of a column among the cells of a word: their number for one that follows them, -1 for
// none.
func (s *SentenceWriter) columnIn(cells []string, name string) int {
	names := s.format.Columns
	switch {
	case s.format.Type == "conllu" && name == "tags":
		name, names = "upos", conlluColumns
	case s.format.Type == "conllu":
		names = conlluColumns
	case s.source == nil, len(names) == 0 && name == "tags" && len(cells) == 1:
		return len(cells) // after the word
	case len(names) == 0 && name == "tags":
		return len(cells) - 1
	case len(names) == 0:
		names = Numbered(len(cells))
	}
	if at := slices.Index(names, name); at < len(cells) {
		return at
	}
	return -1
}
