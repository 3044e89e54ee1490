package corpus

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// delimiters are those that are suggested for a file that has another one than its format says.
var delimiters = []string{";", "\t", "|", ","}

// otherDelimiter returns an error if only another delimiter divides the first rows of the file, of which nothing has
// been read, into columns. It is one diagnosis in place of an error for each row.
func (d *reader) otherDelimiter() error {
	const sampleSize = 1 << 14 // bytes
	sample, _ := d.in.Peek(sampleSize)
	truncated := len(sample) == sampleSize
	want := len(d.format.Columns)
	divided := func(rows []int) bool { // into the same number of columns, at least two
		n := rows[0]
		return n > 1 && (want == 0 || n == want) && !slices.ContainsFunc(rows, func(m int) bool { return m != n })
	}
	rows := d.cellCounts(sample, d.format.Delimiter, truncated)
	switch {
	case want == 1 || len(rows) < 2 || divided(rows):
		return nil
	case !d.format.NoHeader && rows[0] > 1, d.format.NoHeader && want == 0:
		return nil // the first row has the columns, and others are wrong
	}
	for _, other := range delimiters {
		if other == d.format.Delimiter {
			continue
		}
		rows := d.cellCounts(sample, other, truncated)
		// quotes that are letters make rows malformed with any delimiter: most rows are enough
		wellFormed := slices.DeleteFunc(slices.Clone(rows), func(n int) bool { return n < 0 })
		if len(wellFormed) > 1 && 2*len(wellFormed) > len(rows) && rows[0] > 0 && divided(wellFormed) {
			line, _, _ := strings.Cut(string(sample), "\n")
			return fmt.Errorf("%q has another delimiter than %q; delimiter: %q divides it into %d columns",
				start(strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "?")), d.format.Delimiter, other, rows[0])
		}
	}
	return nil
}

// cellCounts returns the number of cells of each row of a sample of the file with a delimiter, -1 for a malformed row.
// The last row of a truncated sample is not counted: it may end within a cell.
func (d *reader) cellCounts(sample []byte, delimiter string, truncated bool) []int {
	format := Format{Type: "csv", Delimiter: delimiter, Quote: d.format.Quote}
	rows := newReader(bytes.NewReader(sample), "", format, &mistakes{})
	var counts []int
	for line, more := rows.next(); more; line, more = rows.next() {
		if line == "" {
			continue
		}
		cells, ok := rows.cells(nil, line, rows.place)
		if !ok {
			counts = append(counts, -1)
			continue
		}
		counts = append(counts, len(cells))
	}
	if truncated && len(counts) > 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}

// inNames are the names of fields of which a header that is one has at least one, or it names the run's own.
var inNames = []string{"text", "pair", "words", "label", "labels", "tags", "entities", "value", "question", "context",
	"answers", "id"}

// headless replaces the mistakes of a table's rows by one if its header is a record: if a cell of it is a value of its
// column in another row too, and none is a name that we know.
func (d *reader) headless(at Place, names []string, repeated bool) {
	if len(d.shown) == 0 || !repeated || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(inNames, strings.ToLower(name))
	}) {
		return
	}
	*d.mistakes = mistakes{}
	d.invalids = 0
	d.add(at, "the first line, %s, is a record, not the names of columns; %s", listedCells(names), headerRemedy)
}

// headerRemedy says how a table without a header is read.
const headerRemedy = "header: false with columns: [NAME, …] is for a file without a header"

// listedCells lists cells for an error.
func listedCells(cells []string) string {
	const most = 4
	var shown []string
	for _, cell := range cells[:min(most, len(cells))] {
		shown = append(shown, fmt.Sprintf("%q", start(cell)))
	}
	if len(cells) > most {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}
