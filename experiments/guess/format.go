package guess

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
	"golang.org/x/text/encoding/unicode"
)

// What is read of a file at most.
const (
	maxBytes   = 4 << 20 // after decompression
	maxRecords = 5000
)

// head is the beginning of a data file.
type head struct {
	path   string
	text   []byte // decompressed, without a byte-order mark
	whole  bool   // the text is all of the file
	utf16  bool   // the file is UTF-16, and the text in UTF-8
	opened bool   // the file is read as a whole, as training does; text is empty
}

// isOpened reports whether data has a format without lines that could be read from the start alone: parquet, JSON or a
// folder of intents and slots.
func isOpened(path string) bool {
	kind := corpus.FileType(path)
	return corpus.IsSlotFolder(path) || kind == "parquet" || kind == "json"
}

// nameOfUTF16 is the encoding of a file with its byte-order mark.
const nameOfUTF16 = "utf-16"

// readHead reads the beginning of a file.
func readHead(path string) (*head, error) {
	if isOpened(path) {
		return &head{path: path, opened: true, whole: true}, nil
	}
	text, whole, err := beginning(path)
	if err != nil {
		return nil, err
	}
	h := &head{path: path, whole: whole}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		h.utf16 = true
		if text, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	h.text = bytes.TrimPrefix(text, []byte("\ufeff"))
	switch {
	case len(bytes.TrimSpace(h.text)) == 0:
		return nil, fmt.Errorf("%s: no records; want at least one", path)
	case bytes.IndexByte(h.text, 0) >= 0:
		return nil, fmt.Errorf("%s: the file is no text; want csv, tsv, jsonl, json, parquet, conll or conllu", path)
	}
	return h, nil
}

// beginning reads at most maxBytes of a file. It ends with a whole character of UTF-8, if it is that.
func beginning(path string) (text []byte, whole bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s: not a file; jenga looks at files and folders", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(file); err != nil {
			return nil, false, fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err = io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) <= maxBytes {
		return text, true, nil
	}
	end := maxBytes
	for end > maxBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], false, nil
}

// name is the path without .gz: the text is decompressed.
func (h *head) name() string { return strings.TrimSuffix(h.path, ".gz") }

// read reads the records of the head in a format.
func (h *head) read(f corpus.Format) ([]corpus.Record, error) {
	if h.opened {
		records, err := corpus.Open(h.path, f)
		return records[:min(len(records), maxRecords)], err
	}
	switch named := f.Encoding == nameOfUTF16; {
	case h.utf16 && !named:
		return nil, fmt.Errorf("%s: the file is UTF-16; encoding: utf-16 reads it", h.path)
	case named && !h.utf16:
		return nil, fmt.Errorf("%s: the file is not UTF-16", h.path)
	case named:
		f.Encoding = "" // that of the text
	}
	kind := f.Type
	if kind == "" {
		kind = corpus.FileType(h.path)
	}
	blank := f.Delimiter != "" && strings.Trim(f.Delimiter, " ") == ""
	text := completeRecords(h.text, kind, (kind == "csv" || kind == "tsv") && f.Quote == "" && !blank, h.whole)
	records, err := corpus.Read(bytes.NewReader(text), h.name(), f)
	if err != nil {
		return nil, err
	}
	return records[:min(len(records), maxRecords)], nil
}

// completeRecords returns the text up to the end of a record, at most about maxRecords of them. Quotes in a table may
// hold ends of lines; an empty line ends a sentence.
func completeRecords(text []byte, kind string, quoted, whole bool) []byte {
	sentences := kind == "conll" || kind == "conllu"
	end, records, open, start := 0, 0, false, 0
	for start < len(text) && records < maxRecords+1 {
		n := bytes.IndexByte(text[start:], '\n')
		if n < 0 {
			break
		}
		line := text[start : start+n]
		start += n + 1
		if quoted && bytes.Count(line, []byte(`"`))%2 == 1 {
			open = !open
		}
		if !open && (!sentences || len(bytes.TrimSpace(line)) == 0) {
			end = start
			records++
		}
	}
	if whole && records < maxRecords+1 || end == 0 {
		return text
	}
	return text[:end]
}

// encodingOf returns the encoding of a text: "" is UTF-8. If most characters beyond ASCII are UTF-8 the text is, and
// has some wrong bytes: in another encoding all the others would be wrong.
func encodingOf(text []byte) string {
	valid, invalid := 0, 0
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			valid++
		}
	}
	// in Latin-1 the bytes 0x80 to 0x9f are control codes, which do not occur in texts
	control := func(b byte) bool { return b >= 0x80 && b < 0xa0 }
	switch {
	case invalid == 0 || valid >= invalid:
		return ""
	case slices.ContainsFunc(text, control):
		return "cp1252"
	}
	return "latin1"
}

// data is what was read of a training file.
type data struct {
	format  corpus.Format
	records []corpus.Record
	columns []string // by position, for a table; nil where records have names
	notes   []string
}

// data finds out the format of a file, and reads its first records.
func (h *head) data() (*data, error) {
	if h.opened {
		records, err := h.read(corpus.Format{})
		return &data{records: records}, err
	}
	d := &data{format: corpus.Format{Encoding: encodingOf(h.text)}}
	switch encoding := d.format.Encoding; {
	case h.utf16:
		d.format.Encoding = nameOfUTF16
		d.notes = append(d.notes, "encoding: the file begins with UTF-16's byte-order mark")
	case encoding != "":
		d.notes = append(d.notes, fmt.Sprintf("encoding: the file is not UTF-8, and all its bytes are of %s", encoding))
	}
	switch kind := corpus.FileType(h.path); kind {
	case "":
		return h.sniffed(d)
	case "csv", "tsv":
		return h.table(d, kind)
	}
	var err error
	d.records, err = h.read(d.format)
	return d, err
}

// sniffed finds out the format of a file whose extension tells nothing.
func (h *head) sniffed(d *data) (*data, error) {
	lines := h.lines(maxRecords)
	labels := leadingLabels(lines)
	for _, format := range []struct {
		is     bool
		kind   string
		reason string
	}{
		{corpus.IsSquad(h.text) || strings.HasPrefix(lines[0], "["), "json", "it begins as JSON does"},
		{strings.HasPrefix(strings.TrimSpace(lines[0]), "{"), "jsonl", "its first line begins with {"},
		{isCoNLLU(lines), "conllu", "its lines have 10 columns, the first a number"},
		{isCoNLL(lines), "conll", "a word with its tag on each line, and empty lines between sentences"},
		{labels > 0, "csv", fmt.Sprintf("each line begins with one of %s and a blank", plugin.Count(labels, "label"))},
	} {
		if !format.is {
			continue
		}
		d.format.Type = format.kind
		d.notes = append(d.notes, fmt.Sprintf("format: %s: %s", format.kind, format.reason))
		switch format.kind {
		case "csv":
			d.format.NoHeader, d.format.Delimiter, d.format.Columns = true, " ", []string{"label", "text"}
		case "json":
			h.opened = true
		}
		var err error
		d.records, err = h.read(d.format)
		return d, err
	}
	return h.table(d, "")
}

// lines returns the first n whole lines, and at least one.
func (h *head) lines(n int) []string {
	lines := strings.SplitN(string(h.text), "\n", n+1)
	if len(lines) > n || len(lines) > 1 && (!h.whole || lines[len(lines)-1] == "") {
		lines = lines[:len(lines)-1]
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// isCoNLLU reports whether lines are those of CoNLL-U: comments, empty lines, and words in 10 columns.
func isCoNLLU(lines []string) bool {
	n := 0
	for _, line := range lines {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.Count(line, "\t") != 9 || line[0] < '0' || line[0] > '9':
			return false
		}
		n++
	}
	return n > 0
}

// isCoNLL reports whether lines have the same number of columns, at least 2, and there are empty lines between them.
func isCoNLL(lines []string) bool {
	columns, sentences, filled := 0, 0, false
	for i, line := range lines {
		cells := strings.Fields(line)
		if strings.Contains(line, "\t") {
			cells = strings.Split(line, "\t")
		}
		switch {
		case strings.TrimSpace(line) == "":
			if filled && i < len(lines)-1 {
				sentences++
			}
			filled = false
			continue
		case columns == 0:
			columns = len(cells)
		case len(cells) != columns:
			return false
		}
		filled = true
	}
	return columns > 1 && sentences > 0
}

// leadingLabels returns the number of labels with which lines begin, before a blank and a text; 0 if they begin with
// something else.
func leadingLabels(lines []string) int {
	counts, n := map[string]int{}, 0
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		label, text, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		if strings.TrimSpace(text) == "" || strings.ContainsAny(label, "\t,;|") {
			return 0
		}
		counts[label]++
		n++
	}
	// a first word of sentences occurs more than once too, but a few of them are not all
	if len(counts) < 2 || len(counts) > 200 || len(counts)*4 > n {
		return 0
	}
	return len(counts)
}
