package guess

import (
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// data is what was read of a training file.
type data struct {
	format  corpus.Format
	records []corpus.Record
	columns []string // by position, for a table; nil where records have names
	notes   []string
}

// data finds out the format of a file, and reads its first records.
func (h *head) data() (*data, error) {
	if h.slots {
		records, err := h.read(corpus.Format{})
		return &data{records: records}, err
	}
	if corpus.FileType(h.path) == "parquet" {
		records, err := corpus.Open(h.path, corpus.Format{})
		return &data{records: records[:min(len(records), maxRecords)]}, err
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
	first := strings.TrimSpace(lines[0])
	note := func(kind, reason string) {
		d.format.Type = kind
		d.notes = append(d.notes, fmt.Sprintf("format: %s: %s", kind, reason))
	}
	var err error
	switch {
	case strings.HasPrefix(first, "[") || corpus.IsSquad(h.text):
		note("json", "it begins with "+first[:1])
		d.records, err = h.read(d.format)
		return d, err
	case strings.HasPrefix(first, "{"):
		note("jsonl", "its first line begins with {")
		d.records, err = h.read(d.format)
		return d, err
	case isCoNLLU(lines):
		note("conllu", "its lines have 10 columns, the first a number")
		d.records, err = h.read(d.format)
		return d, err
	case isCoNLL(lines):
		note("conll", "a word with its tag on each line, and empty lines between sentences")
		d.records, err = h.read(d.format)
		return d, err
	}
	if labels := leadingLabels(lines); labels > 0 {
		note("csv", fmt.Sprintf("each line begins with one of %s and a blank", plugin.Count(labels, "label")))
		d.format.NoHeader, d.format.Delimiter, d.format.Columns = true, " ", []string{"label", "text"}
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
