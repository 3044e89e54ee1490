package corpus

import (
	"bytes"
	"encoding/csv"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// rowFormats are formats of tables without a header, of rows of two cells.
var rowFormats = map[string]Format{
	"csv": {Type: "csv"}, "tsv": {Type: "tsv"}, "semicolons": {Type: "csv", Delimiter: ";"},
	"bars": {Type: "csv", Delimiter: "||"}, "bars without quotes": {Type: "csv", Delimiter: "||", Quote: "none"},
	"tsv without quotes": {Type: "tsv", Quote: "none"}, "blanks": {Type: "csv", Delimiter: " "},
}

// checkRow requires that a row is read as it was written, or refused.
func checkRow(t *testing.T, name string, cells ...string) (written bool) {
	t.Helper()
	f := rowFormats[name]
	f.NoHeader, f.Columns = true, []string{"a", "b"}[:len(cells)]
	var out bytes.Buffer
	if err := f.WriteRow(&out, cells); err != nil {
		return false
	}
	records, err := Read(&out, "x", f)
	if err != nil || len(records) != 1 {
		t.Fatalf("%s: %q is read as %v, %v", name, cells, records, err)
	}
	for i, column := range f.Columns {
		if got := records[0].Fields[column]; got != cells[i] {
			t.Errorf("%s: %q is read as %q", name, cells[i], got)
		}
	}
	return true
}

func TestWrittenRowsAreReadAgain(t *testing.T) {
	for _, test := range []struct {
		cells   []string
		refused string // the formats that cannot hold them
	}{
		{[]string{"a", "b"}, ""},
		{[]string{"a", "b c "}, ""},
		{[]string{"a", ""}, "blanks"},
		{[]string{"a b", "c"}, "blanks"},
		{[]string{"", ""}, "blanks"},
		{[]string{"a;b,c", "d||"}, "bars without quotes"},
		{[]string{"a|", "b"}, "bars without quotes"},
		{[]string{`"`, `say "x"`}, ""},
		{[]string{"a\tb", "c\nd"}, "bars without quotes, tsv without quotes, blanks"},
		{[]string{"\ufeffa", "b"}, "bars without quotes, tsv without quotes, blanks"},
		{[]string{" a", "b"}, "blanks"},
		{[]string{""}, "bars without quotes, tsv without quotes, blanks"},
	} {
		for name := range rowFormats {
			want := !strings.Contains(", "+test.refused+",", ", "+name+",")
			if got := checkRow(t, name, test.cells...); got != want {
				t.Errorf("%s: %q is written: %v, want %v", name, test.cells, got, want)
			}
		}
	}
}

func TestRowsOfCSVAreThoseOfGo(t *testing.T) {
	rows := [][]string{{"a", "b,c", ""}, {`"`, " x", "y "}, {"l\nm", "é", "\t"}}
	var got, want bytes.Buffer
	for _, row := range rows {
		if err := (Format{Type: "csv"}).WriteRow(&got, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := csv.NewWriter(&want).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(strings.Split(got.String(), "\n"), strings.Split(want.String(), "\n")) {
		t.Errorf("%q, want %q", got.String(), want.String())
	}
}

func FuzzWriteRow(f *testing.F) {
	f.Add("a|", `"b`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) || strings.Contains(a+b, "\r\n") {
			return // line ends are read as LF
		}
		for name := range rowFormats {
			checkRow(t, name, a, b)
		}
	})
}
