package guess

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
)

// delimiters are those to try, in order.
var delimiters = map[string][]string{
	"csv": {",", ";", "\t", "|"}, "tsv": {"\t", ",", ";", "|"}, "": {"\t", ",", ";", "|"},
}

// delimiterNames are the delimiters' names for a note.
var delimiterNames = map[string]string{",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

// table finds out the delimiter, the quotes and the header of a table; kind is the type of its extension.
func (h *head) table(d *data, kind string) (*data, error) {
	f, rows, err := h.rows(d.format, kind)
	if err != nil {
		return nil, err
	}
	if f.Delimiter != delimiters[kind][0] || kind == "" && len(rows[0]) > 1 {
		d.notes = append(d.notes, delimiterNames[f.Delimiter]+" separate the columns")
	}
	if f.Quote != "" && len(rows[0]) > 1 {
		d.notes = append(d.notes, "quote: none: quotes are characters of the texts")
	}

	names, reason := header(rows)
	switch ragged := f.Columns != nil; {
	case names == nil:
		d.notes = append(d.notes, "header: false: "+reason)
		for i := range rows[0] {
			d.columns = append(d.columns, strconv.Itoa(i+1))
		}
		f.Columns = d.columns
	case ragged: // a header, and rows that do not fit it
		f.NoHeader, f.Columns = false, nil
		_, err := h.read(f)
		return nil, err
	default:
		f.NoHeader, d.columns = false, unique(names)
		if !slices.Equal(d.columns, names) {
			f.Columns = d.columns
			d.notes = append(d.notes, "columns: the header has a name twice")
		}
	}
	d.format = shorten(f, kind)
	d.records, err = h.read(d.format)
	return d, err
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
// be a header. Without such, rows may go on after the columns that all have, or have one cell each.
func (h *head) rows(f corpus.Format, kind string) (corpus.Format, [][]string, error) {
	f.Type, f.NoHeader = "csv", true
	var first error // with the first delimiter
	for i, sep := range delimiters[kind] {
		for _, quote := range []string{"", "none"} {
			f.Delimiter, f.Quote = sep, quote
			rows, err := h.cells(f)
			if i == 0 && quote == "" {
				first = err
			}
			if err == nil && len(rows[0]) > 1 {
				return h.unquoted(f, rows), rows, nil
			}
		}
	}
	if ragged, rows, ok := h.ragged(f, kind); ok {
		return ragged, rows, nil
	}

	// one column
	f.Delimiter, f.Quote = delimiters[kind][0], ""
	if kind == "" {
		f.Quote = "none"
	}
	rows, err := h.cells(f)
	if err != nil && first != nil {
		err = first
	}
	return f, rows, err
}

// unquoted returns f without quotes for a table with tabs whose rows are the same without: a later text may have a
// quote within, as texts between tabs often have.
func (h *head) unquoted(f corpus.Format, rows [][]string) corpus.Format {
	if f.Delimiter != "\t" || f.Quote != "" || h.whole && !bytes.Contains(h.text, []byte(`"`)) {
		return f
	}
	f.Quote = "none"
	same, err := h.cells(f)
	if f.Quote = ""; err == nil && slices.EqualFunc(rows, same, slices.Equal) {
		f.Quote = "none"
	}
	return f
}

// cells reads all rows as lists of cells.
func (h *head) cells(f corpus.Format) ([][]string, error) {
	records, err := h.read(f)
	if err != nil {
		return nil, err
	}
	rows := make([][]string, len(records))
	for i, r := range records {
		for n := 1; n <= len(r.Fields); n++ {
			cell, _ := r.Fields[strconv.Itoa(n)].(string)
			rows[i] = append(rows[i], cell)
		}
	}
	return rows, nil
}

// ragged reads a table without quotes, some rows of which have more columns than the others: at most a fifth.
func (h *head) ragged(f corpus.Format, kind string) (corpus.Format, [][]string, bool) {
	f.Quote = "none"
	for _, sep := range append([]string{"\t"}, delimiters[kind]...) {
		least, equal, n := -1, 0, 0
		for _, line := range h.lines(maxRecords) {
			if line == "" {
				continue
			}
			n++
			switch count := strings.Count(line, sep); {
			case least < 0 || count < least:
				least, equal = count, 1
			case count == least:
				equal++
			}
		}
		if least < 1 || equal*5 < n*4 {
			continue
		}
		for c := range least + 1 {
			f.Columns = append(f.Columns, strconv.Itoa(c+1))
		}
		f.Delimiter = sep
		rows, err := h.cells(f)
		return f, rows, err == nil
	}
	return f, nil, false
}

// header returns the names of the columns if the first row holds them, else the reason why it does not.
func header(rows [][]string) (names []string, reason string) {
	first, rest := rows[0], rows[1:]
	if len(rest) == 0 {
		return nil, "there is one row"
	}
	for i, cell := range first {
		switch {
		case cell == "" && i == 0: // an index, as pandas writes it
		case strings.TrimSpace(cell) == "":
			return nil, fmt.Sprintf("cell %d of the first row is empty", i+1)
		case isNumber(cell):
			return nil, fmt.Sprintf("the first row holds a number, %s", start(cell))
		}
	}
	for i, cell := range first {
		if again := count(rest, i, cell); again > 0 && cell != "" {
			return nil, fmt.Sprintf("%q of the first row is in %d others", start(cell), again)
		}
	}
	for i, cell := range first {
		if cell != "" && hint(cell) != "" {
			return first, ""
		}
		if numbers(rest, i) {
			return first, ""
		}
	}
	for i, cell := range first {
		if long := meanLength(rest, i); long > 20 && float64(utf8.RuneCountInString(cell)) > long/2 {
			return nil, "the first row is as long as the others"
		}
	}
	return first, ""
}

// numbers reports whether a column holds numbers.
func numbers(rows [][]string, column int) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return !isNumber(row[column]) })
}

// count returns in how many rows a column has a value.
func count(rows [][]string, column int, value string) (n int) {
	for _, row := range rows {
		if row[column] == value {
			n++
		}
	}
	return n
}

// meanLength returns the mean length of a column's cells, in characters.
func meanLength(rows [][]string, column int) float64 {
	sum := 0
	for _, row := range rows {
		sum += utf8.RuneCountInString(row[column])
	}
	return float64(sum) / float64(max(1, len(rows)))
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}

// unique returns names that differ: the second of two gets a number.
func unique(names []string) []string {
	out := slices.Clone(names)
	for i, name := range out {
		for n := 2; name != "" && slices.Contains(out[:i], out[i]); n++ {
			out[i] = fmt.Sprintf("%s_%d", name, n)
		}
	}
	return out
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
