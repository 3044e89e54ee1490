package corpus

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteRow writes a row of a csv or tsv file of format f, whose Type is set, so that reading it returns the same cells.
// Cells are quoted where they must be. It returns an error for cells that a file without quotes cannot hold.
func (f Format) WriteRow(w io.Writer, cells []string) error {
	f, err := f.settled("", false)
	if err != nil {
		return err
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch {
		case f.quoted() && f.needsQuotes(cell, len(cells)):
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
	_, err = io.WriteString(w, strings.Join(row, f.Delimiter)+"\n")
	return err
}

// delimited reports whether the delimiter would end a cell before its end, or a character early, as "||" after "a|".
func (f Format) delimited(cell string) bool {
	return strings.Index(cell+f.Delimiter, f.Delimiter) < len(cell)
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
