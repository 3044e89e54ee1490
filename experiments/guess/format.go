package guess

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// What is read of a file at most.
const (
	maxRecords = 5000
	maxBytes   = 4 << 20 // after decompression, to find out the encoding
)

// sample is the beginning of a training file, and its format.
type sample struct {
	path    string
	format  corpus.Format
	records []corpus.Record
	columns []string // by position, for a table; nil where records have names
	notes   []string
}

// sampleOf finds out the format of a file, and reads its first records.
func sampleOf(path string) (*sample, error) {
	s := &sample{path: path}
	kind := corpus.FileType(path)
	if kind == "json" || kind == "parquet" || corpus.IsSlotFolder(path) {
		return s, s.read(s.format)
	}
	text, err := beginning(path)
	if err != nil {
		return nil, err
	}
	utf16 := bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
	switch {
	case utf16:
		s.format.Encoding = "utf-16"
		s.note("encoding: the file begins with UTF-16's byte-order mark")
	case bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("%s: the file is no text; want csv, tsv, jsonl, json, parquet, conll or conllu", path)
	default:
		if s.format.Encoding = encodingOf(text); s.format.Encoding != "" {
			s.note(fmt.Sprintf("encoding: the file is not UTF-8, and all its bytes are of %s", s.format.Encoding))
		}
	}
	switch {
	case kind == "" && s.sniff(bytes.TrimSpace(text)):
		return s, nil
	case kind == "" || kind == "csv" || kind == "tsv":
		return s, s.table(kind)
	}
	return s, s.read(s.format)
}

func (s *sample) note(note string) { s.notes = append(s.notes, note) }

// beginning reads at most maxBytes of a file, to the end of a line.
func beginning(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file; jenga looks at files and folders", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		r = corpus.Decompress(r)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if end := bytes.LastIndexByte(text, '\n'); len(text) == maxBytes && end >= 0 {
		text = text[:end]
	}
	return text, nil
}

// read reads the first records in a format, which is that of the sample then.
func (s *sample) read(f corpus.Format) (err error) {
	s.format = f
	s.records, err = corpus.First(s.path, f, maxRecords)
	return err
}

// encodingOf returns the encoding of a text: "" is UTF-8. If most characters beyond ASCII are UTF-8 the text is, and
// has some wrong bytes: in another encoding all the others would be wrong.
func encodingOf(text []byte) string {
	valid, invalid := 0, 0
	for _, r := range string(text) {
		switch {
		case r == utf8.RuneError:
			invalid++
		case r >= utf8.RuneSelf:
			valid++
		}
	}
	// in Latin-1 the bytes 0x80 to 0x9f are control codes, which do not occur in texts
	control := func(b byte) bool { return b >= 0x80 && b < 0xa0 }
	switch {
	case utf8.Valid(text) || valid >= invalid:
		return ""
	case slices.ContainsFunc(text, control):
		return "cp1252"
	}
	return "latin1"
}

// sniff reads a file whose extension tells nothing, if it is no table.
func (s *sample) sniff(text []byte) bool {
	begins := func(with string) bool { return bytes.HasPrefix(text, []byte(with)) }
	blocks := bytes.Contains(text, []byte("\n\n")) || bytes.Contains(text, []byte("\n\r\n"))
	encoding := s.format.Encoding
	for _, try := range []struct {
		is     bool
		format corpus.Format
		reason string
	}{
		{corpus.IsSquad(text) || begins("["), corpus.Format{Type: "json"}, "it begins as JSON does"},
		{begins("{"), corpus.Format{Type: "jsonl"}, "its first line begins with {"},
		{blocks, corpus.Format{Type: "conll"}, "a word with its tag on each line, and empty lines between sentences"},
		{true, corpus.Format{Type: "csv", NoHeader: true, Delimiter: " ", Columns: []string{"label", "text"}}, ""},
	} {
		if try.format.Encoding = encoding; !try.is || s.read(try.format) != nil {
			continue
		}
		if try.format.Delimiter != "" {
			labels := s.leadingLabels()
			if labels == 0 {
				continue
			}
			try.reason = fmt.Sprintf("each line begins with one of %s and a blank", plugin.Count(labels, "label"))
		}
		s.note(fmt.Sprintf("format: %s: %s", try.format.Type, try.reason))
		return true
	}
	s.format = corpus.Format{Encoding: encoding}
	return false
}

// leadingLabels returns the number of labels with which lines begin; 0 if their first words are none. A first word of
// sentences occurs more than once too, but a few of them are not all.
func (s *sample) leadingLabels() int {
	labels := map[string]bool{}
	for _, r := range s.records {
		label, _ := r.Fields["label"].(string)
		if strings.ContainsAny(label, "\t,;|") {
			return 0
		}
		labels[label] = true
	}
	if n := len(labels); n > 1 && n <= 200 && n*4 <= len(s.records) {
		return n
	}
	return 0
}

// delimiters are those to try, in order.
var delimiters = map[string][]string{
	"csv": {",", ";", "\t", "|"}, "tsv": {"\t", ",", ";", "|"}, "": {"\t", ",", ";", "|"},
}

// delimiterNames are the delimiters' names for a note.
var delimiterNames = map[string]string{",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

// table finds out the delimiter, the quotes and the header of a table; kind is the type of its extension.
func (s *sample) table(kind string) error {
	f, rows, err := s.rows(kind)
	if err != nil {
		return err
	}
	if f.Delimiter != delimiters[kind][0] || kind == "" && len(rows[0]) > 1 {
		s.note(delimiterNames[f.Delimiter] + " separate the columns")
	}
	if f.Quote != "" && len(rows[0]) > 1 {
		s.note("quote: none: quotes are characters of the texts")
	}
	if reason := headless(rows); reason != "" {
		s.note("header: false: " + reason)
		s.columns = byPosition(len(rows[0]))
		f.Columns = s.columns
	} else {
		s.columns = rows[0]
		f.NoHeader, f.Columns = false, nil
	}
	return s.read(shorten(f, kind))
}

// byPosition returns the names of n columns that have none.
func byPosition(n int) (names []string) {
	for i := range n {
		names = append(names, strconv.Itoa(i+1))
	}
	return names
}

// shorten leaves out what the extension of type kind says anyway.
func shorten(f corpus.Format, kind string) corpus.Format {
	of := map[string]string{",": "csv", "\t": "tsv"}[f.Delimiter]
	switch {
	case of == "" && kind == "": // a delimiter that is no type's default
		f.Type = "csv"
	case of == "":
		f.Type = ""
	case of == kind:
		f.Type, f.Delimiter = "", ""
	default:
		f.Type, f.Delimiter = of, ""
	}
	return f
}

// rows finds the delimiter and quotes with which all rows have the same number of cells, at least 2; the first row may
// be a header. Rows between tabs may go on after the columns that all have. Else there is one column.
func (s *sample) rows(kind string) (f corpus.Format, rows [][]string, err error) {
	f = corpus.Format{Type: "csv", NoHeader: true, Encoding: s.format.Encoding}
	for _, f.Delimiter = range delimiters[kind] {
		for _, f.Quote = range []string{"", "none"} {
			if rows, err = s.cells(f); err == nil && len(rows[0]) > 1 {
				return f, rows, nil
			}
		}
	}

	f.Delimiter, f.Quote = "\t", "none"
	for n := 2; ; n++ {
		longer := f
		longer.Columns = byPosition(n)
		cells, err := s.cells(longer)
		if err != nil {
			break
		}
		f, rows = longer, cells
	}
	if f.Columns != nil {
		return f, rows, nil
	}

	f.Delimiter, f.Quote = delimiters[kind][0], ""
	if kind == "" {
		f.Quote = "none"
	}
	rows, err = s.cells(f)
	return f, rows, err
}

// cells reads all rows as lists of cells.
func (s *sample) cells(f corpus.Format) ([][]string, error) {
	if err := s.read(f); err != nil {
		return nil, err
	}
	rows := make([][]string, len(s.records))
	for i, r := range s.records {
		for _, name := range byPosition(len(r.Fields)) {
			cell, _ := r.Fields[name].(string)
			rows[i] = append(rows[i], cell)
		}
	}
	return rows, nil
}

// headless returns the reason why the first row does not hold the names of the columns, "" if it does.
func headless(rows [][]string) string {
	first, rest := rows[0], rows[1:]
	if len(rest) == 0 {
		return "there is one row"
	}
	for i, cell := range first {
		again, length := 0, 0
		for _, row := range rest {
			length += utf8.RuneCountInString(row[i])
			if row[i] == cell {
				again++
			}
		}
		switch length /= len(rest); {
		case cell == "" && i == 0: // an index, as pandas writes it
		case strings.TrimSpace(cell) == "":
			return fmt.Sprintf("cell %d of the first row is empty", i+1)
		case isNumber(cell):
			return fmt.Sprintf("the first row holds a number, %s", start(cell))
		case again > 0:
			return fmt.Sprintf("%q of the first row is in %d others", start(cell), again)
		case length > 20 && utf8.RuneCountInString(cell) > length/2 && !slices.ContainsFunc(first, hinted):
			return "the first row is as long as the others"
		}
	}
	return ""
}

// hinted reports whether a cell is a name that tells the role of a column.
func hinted(cell string) bool { return hint(cell) != "" }

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}

// start returns the first characters of a text, for a note in one line.
func start(text string) string {
	const characters = 40
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:characters]) + "…"
	}
	return text
}
