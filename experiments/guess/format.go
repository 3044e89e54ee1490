package guess

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/files"
)

// What is read of a file at most.
const (
	maxRecords = 5000
	maxBytes   = 4 << 20 // after decompression, to find out the encoding
)

// detect finds out the format of the training file, and reads its first records.
func (s *Set) detect() error {
	kind := corpus.FileType(s.Train)
	if kind == "json" || kind == "parquet" || corpus.IsSlotFolder(s.Train) {
		return s.read(s.Format)
	}
	text, err := beginning(s.Train)
	if err != nil {
		return err
	}
	if s.Format.Encoding = encodingOf(text); s.Format.Encoding != "" {
		s.note("encoding: the file is not UTF-8")
	} else if bytes.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("%s: the file is no text; want csv, tsv, jsonl, json, parquet, conll or conllu", s.Train)
	}
	switch {
	case kind == "" && s.sniff(bytes.TrimSpace(text)):
		return nil
	case kind == "" || kind == "csv" || kind == "tsv":
		return s.table(kind)
	}
	return s.read(s.Format)
}

func beginning(path string) ([]byte, error) {
	file, err := files.Open(path)
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

// read reads the first records in a format, which is that of the set then.
func (s *Set) read(f corpus.Format) (err error) {
	s.Format = f
	s.records, err = corpus.First(context.Background(), s.Train, f, maxRecords)
	return err
}

// encodingOf returns the encoding of a text: "" is UTF-8. If most characters beyond ASCII are UTF-8 the text is, and
// has some wrong bytes: in another encoding all the others would be wrong.
func encodingOf(text []byte) string {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return "utf-16"
	}
	valid, invalid := 0, 0
	for _, r := range string(text) {
		switch {
		case r == utf8.RuneError:
			invalid++
		case r >= utf8.RuneSelf:
			valid++
		}
	}
	if utf8.Valid(text) || valid >= invalid {
		return ""
	}
	return "cp1252" // which has the letters of Latin-1
}

// sniff reads a file whose extension tells nothing, if it is no table.
func (s *Set) sniff(text []byte) bool {
	encoding := s.Format.Encoding
	for _, f := range []corpus.Format{
		{Type: "json"}, {Type: "jsonl"}, {Type: "conll"},
		{Type: "csv", NoHeader: true, Delimiter: " ", Columns: []string{"label", "text"}},
	} {
		f.Encoding = encoding
		switch {
		case f.Type == "json" && !corpus.IsSquad(text) && !bytes.HasPrefix(text, []byte("[")),
			f.Type == "jsonl" && !bytes.HasPrefix(text, []byte("{")),
			f.Type == "conll" && !bytes.Contains(text, []byte("\n\n")) && !bytes.Contains(text, []byte("\n\r\n")),
			s.read(f) != nil, f.Type == "csv" && !s.leadingLabels():
			continue
		}
		s.note("format: %s: the file begins so, and its name does not tell", f.Type)
		return true
	}
	s.Format = corpus.Format{Encoding: encoding}
	return false
}

// leadingLabels reports whether lines begin with labels. A first word of sentences occurs more than once too, but a few
// of them are not all.
func (s *Set) leadingLabels() bool {
	labels := map[string]bool{}
	for _, r := range s.records {
		label, _ := r.Fields["label"].(string)
		if strings.ContainsAny(label, "\t,;|") {
			return false
		}
		labels[label] = true
	}
	return len(labels) > 1 && len(labels) <= 200 && len(labels)*4 <= len(s.records)
}

// delimiters are those to try, in order.
var delimiters = map[string][]string{
	"csv": {",", ";", "\t", "|"}, "tsv": {"\t", ",", ";", "|"}, "": {"\t", ",", ";", "|"},
}

// table finds out the delimiter, the quotes and the header of a table; kind is the type of its extension.
func (s *Set) table(kind string) error {
	f, rows, err := s.rows(kind)
	if err != nil {
		return err
	}
	if f.Delimiter != delimiters[kind][0] || kind == "" && len(rows[0]) > 1 {
		s.note("%s separate the columns",
			map[string]string{",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[f.Delimiter])
	}
	if f.Quote != "" && len(rows[0]) > 1 {
		s.note("quote: none: quotes are characters of the texts")
	}
	if reason := headless(rows); reason != "" {
		s.note("header: false: %s", reason)
		s.header = byPosition(len(rows[0]))
		f.Columns = s.header
	} else {
		s.header = rows[0]
		f.NoHeader, f.Columns = false, nil
	}

	// what the extension says anyway is left out
	f.Type = "csv"
	if f.Delimiter == "\t" {
		f.Type = "tsv"
	}
	if f.Delimiter == delimiters[f.Type][0] {
		f.Delimiter = ""
	}
	if f.Type == kind {
		f.Type = ""
	}
	return s.read(f)
}

func byPosition(n int) (names []string) {
	for i := range n {
		names = append(names, strconv.Itoa(i+1))
	}
	return names
}

// rows finds the delimiter and quotes with which all rows have the same number of cells, at least 2; the first row may
// be a header. Rows between tabs may go on after the columns that all have. Else there is one column.
func (s *Set) rows(kind string) (f corpus.Format, rows [][]string, err error) {
	f = corpus.Format{Type: "csv", NoHeader: true, Encoding: s.Format.Encoding}
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

func (s *Set) cells(f corpus.Format) ([][]string, error) {
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
		_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
		switch {
		case cell == "" && i == 0: // an index, as pandas writes it
		case strings.TrimSpace(cell) == "" || err == nil:
			return fmt.Sprintf("cell %d of the first row is empty or a number", i+1)
		case slices.ContainsFunc(rest, func(row []string) bool { return row[i] == cell }):
			return fmt.Sprintf("%q of the first row is in others too", start(cell))
		case len(strings.Fields(cell)) > 3 && !slices.ContainsFunc(first, hasRole):
			return "the first row has a text"
		}
	}
	return ""
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
