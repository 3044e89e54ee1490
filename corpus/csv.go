package corpus

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxColumns = 4096
	maxLines   = 1 << 20 // of a row
)

// excelSeparator matches a first line in which Excel finds the delimiter, and nothing else.
var excelSeparator = regexp.MustCompile(`\Asep=[^\r\n]\r*\n`)

// skipSeparator skips the first line if it names the delimiter for Excel.
func (d *reader) skipSeparator() {
	if head, _ := d.in.Peek(len("sep=;\r\r\n")); excelSeparator.Match(head) {
		d.next()
	}
}

func (d *reader) table() {
	d.skipSeparator()
	if !d.format.blank() {
		err := d.commentsBefore()
		if err == nil {
			err = d.otherDelimiter()
		}
		if err != nil {
			d.add(Place{File: d.file, Line: 1}, "%w", err)
			return
		}
	}
	names, ok := d.header()
	if !ok {
		return
	}
	header, ownHeader := d.place, !d.format.NoHeader && len(d.format.Columns) == 0
	d.begin, d.columns = d.offset, names
	repeated := d.rows(names, ownHeader)
	if ownHeader {
		d.headless(header, names, repeated)
	}
	d.open.report(d)
	d.reportComments()
}

// rows reads the rows after the header, if there is one; names are the columns', nil if the first row determines how
// many there are. ownHeader: the names are the header's. repeated reports whether a row repeats a cell of such a
// header.
func (d *reader) rows(names []string, ownHeader bool) (repeated bool) {
	extras := d.format.NoHeader && len(d.format.Columns) > 0
	var cells []string
	for {
		at, row, ok := d.row(cells[:0], len(names))
		if !ok {
			return repeated
		}
		cells = row
		if ownHeader {
			if len(names) > 1 && names[0] == strings.TrimPrefix(cells[0], byteOrderMark) &&
				slices.Equal(names[1:], cells[1:]) {
				d.addHeader(at)
				continue
			}
			repeated = repeated || repeats(names, cells)
		}
		if names == nil {
			names = Numbered(len(cells))
		}
		switch n := len(names); {
		case len(cells) < n:
			d.add(at, "the row ends before column %s, which %s has; write an empty cell where there is no value",
				columnName(names, len(cells)), d.width())
			continue
		case len(cells) > n && !extras:
			d.add(at, "the row goes on after column %s, the last that %s has; put quotes round a cell that holds the "+
				"delimiter",
				columnName(names, n-1), d.width())
			continue
		}

		fields := make(map[string]any, len(names))
		for i, name := range names {
			if name != "" && name != "_" {
				fields[name] = cells[i]
			}
		}
		d.addRecord(Record{Place: at, Fields: fields, headed: ownHeader})
	}
}

func repeats(header, cells []string) bool {
	for i, cell := range cells[:min(len(cells), len(header))] {
		if cell == header[i] && cell != "" {
			return true
		}
	}
	return false
}

// header returns the columns' names, nil if the first row determines how many there are.
func (d *reader) header() (names []string, ok bool) {
	columns := d.format.Columns
	if d.format.NoHeader {
		return columns, true
	}
	at, names, ok := d.row(nil, len(columns))
	if !ok || len(d.shown) > 0 {
		return nil, false // a broken first row may be the header
	}
	if len(columns) > 0 {
		if len(columns) != len(names) {
			d.add(at, "the header has %d columns, but columns names %d; header: false is for a file without one",
				len(names), len(columns))
			return nil, false
		}
		return columns, true
	}
	for i, name := range names {
		if name != "" && name != "_" && slices.Contains(names[:i], name) {
			d.add(at, "two columns are named %q; columns: [NAME, …] gives them other names, with header: false if "+
				"the line is a record", start(name))
			return nil, false
		}
	}
	return names, true
}

// Columns returns the names of the columns of the csv, tsv or parquet file at path, in their order.
func Columns(path string, f Format) ([]string, error) {
	if err := f.Check(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, _ = f.settled(path, false)
	file, err := openRegular(path, "its columns are read before its rows; predictions in jsonl read a pipe")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if f.Type == "parquet" {
		names, err := parquetNames(file, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return names, nil
	}
	d := newReader(context.Background(), file, path, f, &mistakes{})
	d.skipSeparator()
	names, ok := d.header()
	if ok && names == nil { // the first row determines how many there are
		var cells []string
		_, cells, _ = d.row(nil, 0)
		names = Numbered(len(cells))
	}
	return names, d.err(path)
}

// width names, for an error, what determines the number of columns.
func (d *reader) width() string {
	switch {
	case !d.format.NoHeader:
		return "the header"
	case len(d.format.Columns) > 0:
		return "the list of columns"
	}
	return "the first row"
}

func columnName(names []string, i int) string {
	if names[i] == "" || names[i] == "_" {
		return strconv.Itoa(i + 1)
	}
	return strconv.Quote(start(names[i]))
}

// Numbered returns the names of n columns that have no others: 1, 2, ….
func Numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i + 1)
	}
	return names
}

// row reads the next row that is neither empty nor malformed, and appends its cells to cells; columns is the number of
// columns, 0 if it is not known yet. The place is that of the row's first line. ok is false at the end of the file.
func (d *reader) row(cells []string, columns int) (at Place, row []string, ok bool) {
	for line, more := d.next(); more; line, more = d.next() {
		at = d.place
		switch {
		case line == "":
		case d.format.isComment(line):
			d.addComment(at, line, columns)
		case d.format.blank():
			return at, blankCells(cells, line, columns), true
		default:
			if row, ok = d.cells(cells, line, at); ok {
				d.open.add(d, at, row)
				return at, row, true
			}
		}
	}
	return at, cells, false
}

// cells appends the cells of a row whose first line is line, at a place. ok is false for a malformed row, whose error
// it adds.
func (d *reader) cells(cells []string, line string, at Place) (row []string, ok bool) {
	quoted := d.format.quoted()
	d.open.lines, d.open.begin = append(d.open.lines[:0], line), d.offset-int64(len(line))
	for rest, more := line, true; more; {
		var cell string
		if quoted {
			rest = d.format.unpadded(rest)
		}
		if quoted && strings.HasPrefix(rest, `"`) {
			if cell, rest, more, ok = d.quotedCell(rest[1:]); !ok {
				return cells, false
			}
		} else {
			cell, rest, more = strings.Cut(rest, d.format.Delimiter)
			if quoted && strings.Contains(cell, `"`) {
				d.add(at, `a quote within the cell %q; write "" in a quoted cell%s`, start(cell), d.unquoted())
				return cells, false
			}
		}
		if cells = append(cells, cell); len(cells) > maxColumns {
			d.add(at, "the row has more than %d columns; want one record a row", maxColumns)
			return cells, false
		}
	}
	return cells, true
}

// quotedCell reads a cell after its opening quote. left is the rest of the line that the cell ends in, and more reports
// whether another cell follows.
func (d *reader) quotedCell(rest string) (cell, left string, more, ok bool) {
	var b strings.Builder
	defer func() {
		needed := ok && (d.format.delimited(cell) || strings.ContainsAny(cell, "\"\n"))
		d.needsQuotes = d.needsQuotes || needed
		d.open.needed = d.open.needed || needed && !strings.Contains(cell, "\n")
	}()
	for at := d.place; ; {
		part, after, closed := strings.Cut(rest, `"`)
		b.WriteString(part)
		switch {
		case closed && strings.HasPrefix(after, `"`):
			b.WriteByte('"')
			rest = after[1:]
		case closed && after == "":
			return b.String(), "", false, true
		case closed && strings.HasPrefix(after, d.format.Delimiter):
			return b.String(), after[len(d.format.Delimiter):], true, true
		case closed && d.place == at && d.format.endsCell(after):
			_, rest, more := strings.Cut(after, d.format.Delimiter)
			return b.String(), rest, more, true
		case closed && d.place != at:
			d.add(at, `the quote here is closed by that of line %d, before %q; close it where its cell ends, with "" `+
				"for a quote in it%s", d.place.Line, start(after), d.unquoted())
			return "", "", false, false
		case closed:
			d.add(at, `%q after a closing quote; write "" for a quote in a cell%s`, start(after), d.unquoted())
			return "", "", false, false
		default:
			within := ""
			switch rest, ok = d.next(); {
			case d.offset-d.open.begin > maxRecord:
				within = fmt.Sprintf(" within %d MiB", maxRecord>>20)
			case len(d.open.lines) == maxLines:
				within = fmt.Sprintf(" within %d lines", maxLines)
			}
			if !ok || within != "" {
				d.add(at, "the row has a quote that is not closed%s; close it%s", within, d.unquoted())
				d.stop()
				return "", "", false, false
			}
			b.WriteByte('\n')
			d.open.lines = append(d.open.lines, rest)
		}
	}
}

// openQuotes finds cells of several lines that are likely to be several rows: a quote that is a letter begins the
// first, and another ends the last.
type openQuotes struct {
	lines  []string           // of the row that is read
	begin  int64              // offset of its first line
	rows   int                // that were seen
	seen   map[tableCell]bool // short cells of the first rows
	found  []openQuote        // that may be, of which the first are kept
	needed bool               // other cells need their quotes
}

type openQuote struct {
	from, to Place
	sure     bool
	cells    []tableCell // of the lines, if they are rows
}

type tableCell struct {
	column int
	text   string
}

// add adds a row. Where a cell of it ends in another line than it begins, its lines may be rows if they have as many
// columns as it, or, since texts hardly have tabs, if tabs separate columns and the cell has one.
func (o *openQuotes) add(d *reader, at Place, row []string) {
	const (
		mostRows, mostCells = 1000, 10000 // that are seen
		mostFound           = 100
		short               = 40 // bytes of a cell that may be a label
	)
	if d.format.Warn == nil {
		return
	}
	if len(o.lines) == 1 {
		if o.rows++; o.rows == 1 {
			o.seen = map[tableCell]bool{}
		}
		for i := 0; i < len(row) && o.rows <= mostRows && len(o.seen) < mostCells; i++ {
			if row[i] != "" && len(row[i]) <= short {
				o.seen[tableCell{i, strings.Clone(row[i])}] = true
			}
		}
		return
	}
	column := slices.IndexFunc(row, func(cell string) bool { return strings.Contains(cell, "\n") })
	q := openQuote{from: at, to: d.place, sure: d.format.Delimiter == "\t" && strings.Contains(row[column], "\t")}
	for i, line := range o.lines {
		parts := strings.SplitN(line, d.format.Delimiter, len(row)+1)
		if !q.sure && (len(parts) != len(row) || len(row) == 1) || len(o.found) == mostFound {
			o.needed = o.needed || !q.sure
			return
		}
		for j, part := range parts { // the others are cells of the row itself
			if (i > 0 || j > column) && (i < len(o.lines)-1 || j < column) && len(part) <= short {
				q.cells = append(q.cells, tableCell{j, strings.Clone(part)})
			}
		}
	}
	o.found = append(o.found, q)
}

// report adds the doubt of cells that are several rows: of those of which other rows have a cell, as a label.
func (o *openQuotes) report(d *reader) {
	var likely []openQuote
	for _, q := range o.found {
		if q.sure || slices.ContainsFunc(q.cells, func(c tableCell) bool { return o.seen[c] }) {
			likely = append(likely, q)
		} else {
			o.needed = true
		}
	}
	if len(likely) == 0 {
		return
	}
	first, more, remedy := likely[0], "", "quote: none reads quotes as letters"
	if n := len(likely) - 1; n > 0 {
		more = fmt.Sprintf(", as of %s", counted(n, "more row"))
	}
	if o.needed {
		remedy = `where a quote is a letter, write "" for it, within a cell between quotes`
	}
	d.doubt(first.from, "a quote that opens here is closed in line %d: the %d lines are read as one row%s; %s",
		first.to.Line, first.to.Line-first.from.Line+1, more, remedy)
}

// unquoted is the remedy of reading quotes as letters, unless a cell needs them.
func (d *reader) unquoted() string {
	if d.needsQuotes {
		return ""
	}
	return ", or quote: none where quotes are letters"
}

// blankCells splits a line at blanks and appends at most n parts to cells; the last has the rest of the line.
func blankCells(cells []string, line string, n int) []string {
	rest := strings.TrimLeft(line, " ")
	for i := 1; i < n || n == 0 && i < maxColumns; i++ {
		cell, after, more := strings.Cut(rest, " ")
		cells = append(cells, cell)
		if rest = strings.TrimLeft(after, " "); !more || rest == "" {
			return cells
		}
	}
	return append(cells, rest)
}

// delimiters are those that are suggested for a file that has another one than its format says.
var delimiters = []string{";", "\t", "|", ","}

// otherDelimiter returns an error if only another delimiter divides the first rows of the file, of which nothing has
// been read, into columns. It is one diagnosis in place of an error for each row.
func (d *reader) otherDelimiter() error {
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

// commentsBefore returns an error if the file, of which nothing has been read, begins with lines that look like
// comments: with a mark, or one of one cell, and of fewer cells than the rows below them. It is one diagnosis in place
// of an error for each row. A header may begin with a mark, too, and have a cell less than its rows.
func (d *reader) commentsBefore() error {
	sample, _ := d.in.Peek(sampleSize)
	begin := bytes.TrimLeft(sample, "\r\n")
	if d.format.Comments != "" || len(begin) == 0 {
		return nil
	}
	marked := strings.IndexByte(commentMarks, begin[0]) >= 0 // else the first line may be a title
	var above []string
	below := sample
	for line := range bytes.Lines(sample) {
		text := strings.TrimRightFunc(string(line), unicode.IsSpace) // a blank or a tab in front is the row's
		if text != "" && above != nil && (!marked || text[0] != begin[0]) {
			break
		}
		if below = below[len(line):]; text != "" {
			above = append(above, text)
		}
	}
	rows := d.cellCounts(below, d.format.Delimiter, len(sample) == sampleSize)
	if above == nil || len(rows) < 2 || rows[0] < 2 {
		return nil
	}
	alike := 0
	for _, n := range rows {
		if n == rows[0] {
			alike++
		}
	}
	last := d.cellCounts([]byte(above[len(above)-1]), d.format.Delimiter, false)
	divides := func(other string) bool { return strings.Contains(above[0], other) }
	padded := !marked && d.isPadded(above[0], below)
	if !marked && !padded && slices.ContainsFunc(delimiters, divides) {
		return nil
	}
	if alike*10 < len(rows)*9 || len(last) != 1 || last[0] < 1 ||
		last[0] > 1 && !padded && (!marked || last[0] >= rows[0]-1) {
		return nil
	}
	common := beginning(above[0])
	for _, line := range above {
		common = commonBeginning(common, line)
	}
	key, remedy := common, "remove it"
	if blank := common[:1] + " "; marked && strings.HasPrefix(common, blank) {
		key = blank
	}
	for _, key := range []string{key, common} {
		if utf8.ValidString(key) && !bytes.HasPrefix(below, []byte(key)) && !bytes.Contains(below, []byte("\n"+key)) {
			remedy = fmt.Sprintf("comments: %q skips lines that begin so", key)
			break
		}
	}
	if padded {
		return fmt.Errorf("%q has one cell that is not empty, and the row below it names %d columns; if it is a "+
			"title, %s", start(above[0]), rows[0], remedy)
	}
	return fmt.Errorf("%q has %s, and the rows below it have %d; if it is a comment, %s", start(above[0]),
		counted(last[0], "cell"), rows[0], remedy)
}

// isPadded reports whether a line is a title that a spreadsheet has filled with empty cells, above the header: a row
// without empty cells that has a name that we know.
func (d *reader) isPadded(line string, below []byte) bool {
	title := strings.TrimRight(line, d.format.Delimiter)
	if title == line || strings.Contains(title, d.format.Delimiter) || isName(title) {
		return false
	}
	header, _, _ := strings.Cut(string(below), "\n")
	names := strings.Split(strings.TrimRight(header, "\r"), d.format.Delimiter)
	return !slices.Contains(names, "") && slices.ContainsFunc(names, isName)
}

// isName reports whether a cell is a name of a field that we know.
func isName(cell string) bool {
	return slices.Contains(inNames, strings.ToLower(strings.Trim(cell, `"`)))
}

// addComment counts a comment below the header that has as many cells as a row, which it may be.
func (d *reader) addComment(at Place, line string, columns int) {
	if columns < 2 || d.format.blank() || strings.Count(line, d.format.Delimiter) != columns-1 {
		return
	}
	if d.likeRows++; d.likeRows == 1 {
		d.firstLike = at
	}
}

// addHeader counts a row that is the header again, as where tables are joined: it is no record.
func (d *reader) addHeader(at Place) {
	if d.headers++; d.headers == 1 {
		d.firstHeader = at
	}
}

// reportComments adds the doubts of lines that are skipped: of comments that may be rows, and of headers.
func (d *reader) reportComments() {
	if d.headers > 0 {
		d.doubt(d.firstHeader, "%s %s the header again, as where tables were joined, and left out",
			counted(d.headers, "row"), isOrAre(d.headers))
	}
	if d.likeRows > 0 {
		d.doubt(d.firstLike, "comments: %q skips %s below the header, with as many cells as a row; if these are "+
			"records, want how comments alone begin", d.format.Comments, counted(d.likeRows, "line"))
	}
}

// cellCounts returns the number of cells of each row of a sample of the file with a delimiter, -1 for a malformed row.
// The last row of a truncated sample is not counted: it may end within a cell.
func (d *reader) cellCounts(sample []byte, delimiter string, truncated bool) []int {
	format := Format{Type: "csv", Delimiter: delimiter, Quote: d.format.Quote, Comments: d.format.Comments}
	rows := newReader(context.Background(), bytes.NewReader(sample), "", format, &mistakes{})
	var counts []int
	for line, more := rows.next(); more; line, more = rows.next() {
		if line == "" || format.isComment(line) {
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
	if len(d.shown) == 0 || !repeated || d.stopped || slices.ContainsFunc(names, isName) {
		return
	}
	*d.mistakes = mistakes{}
	d.invalids = 0
	d.add(at, "the first line, %s, is a record, not the names of columns; %s", listedCells(names), headerRemedy)
}

const headerRemedy = "header: false with columns: [NAME, …] is for a file without a header"

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
