package corpus

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
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
	w, err := NewTableWriter(&out, f, f.Columns)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]any, len(cells))
	for i, cell := range cells {
		row[i] = cell
	}
	if err := w.Write(row); err != nil {
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
		if err := (Format{Type: "csv", Delimiter: ","}).writeRow(&got, row); err != nil {
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

// What is written from the cells of records is what Open reads.
func TestTablesAreReadAgain(t *testing.T) {
	rows := [][]any{
		{"a", json.Number("1"), []any{"x", "y"}, true}, {nil, json.Number("2"), nil, false}, {"<b>", nil, []any{}, nil},
	}
	columns := []string{"text", "number", "list", "flag"}
	want := map[string][]map[string]any{
		"parquet": {
			{"text": "a", "number": json.Number("1"), "list": []any{"x", "y"}, "flag": true},
			{"text": nil, "number": json.Number("2"), "list": nil, "flag": false},
			{"text": "<b>", "number": nil, "list": []any{}, "flag": nil},
		},
		"csv": {
			{"text": "a", "number": "1", "list": `["x","y"]`, "flag": "true"},
			{"text": "", "number": "2", "list": "", "flag": "false"},
			{"text": "<b>", "number": "", "list": "[]", "flag": ""},
		},
	}
	want["tsv"] = want["csv"]
	for kind, want := range want {
		var out bytes.Buffer
		w, err := NewTableWriter(&out, Format{Type: kind}, columns)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.End(), w.Close()); err != nil {
			t.Fatal(err)
		}
		records, err := Read(&out, "out."+kind, Format{})
		if err != nil {
			t.Fatal(err)
		}
		var got []map[string]any
		for _, r := range records {
			got = append(got, r.Fields)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

func TestSentencesAreCopiedWithOtherValues(t *testing.T) {
	const word = "\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
	for _, test := range []struct {
		file, data string
		format     Format
		columns    []string
		values     [][]string
		want       string
	}{
		{"blanks.conll", "# c\na x O\nb y O\n", Format{Comments: "#"}, []string{"tags"}, [][]string{{"New York", "O"}},
			"# c\na\tx\tNew York\nb\ty\tO\n"},
		{"a.conllu", "# text = ab\n1-2\tab" + word + "1\ta" + word + "2\tb" + word, Format{}, []string{"tags"},
			[][]string{{"VERB", ""}}, "# text = ab\n1-2\tab" + word + "1\ta" +
				strings.Replace(word, "NOUN", "VERB", 1) + "2\tb" + strings.Replace(word, "NOUN", "_", 1)},
		{"a.conll", "-DOCSTART- O\n\na x O\nb y O\n", Format{}, []string{"tags", "2"}, [][]string{{"P", "Q"}, {"z"}},
			"-DOCSTART- O\n\na z P\nb _ Q\n"},
		{"a.conll", "\ufeffa\r\nb", Format{}, []string{"tags"}, [][]string{{"P"}}, "a P\nb _\n\n"},
		{"a.conll", "a|O\n\n", Format{Delimiter: "|", Columns: []string{"words", "ner"}}, []string{"ner"},
			[][]string{{"P"}}, "a|P\n\n"},
		{"", "", Format{Type: "conll"}, []string{"tags"}, [][]string{{"P"}}, "a\tP\nb\t_\n\n"},
		{"", "", Format{Type: "conllu"}, []string{"tags"}, [][]string{{"P"}},
			"1\ta\t_\tP\t_\t_\t_\t_\t_\t_\n2\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n"},
	} {
		path := ""
		if test.file != "" {
			path = filepath.Join(writeFiles(t, test.file, test.data), test.file)
		}
		w, err := NewSentenceWriter(test.format, test.columns, path, strings.HasPrefix(test.file, "blanks"))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := errors.Join(w.Write(&got, []string{"a", "b"}, test.values), w.Close()); err != nil {
			t.Fatal(err)
		}
		if got.String() != test.want {
			t.Errorf("%q with %q is %q, want %q", test.data, test.values, got.String(), test.want)
		}
	}
	path := filepath.Join(writeFiles(t, "a.conll", "a O\n"), "a.conll")
	w, err := NewSentenceWriter(Format{}, []string{"ner"}, path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(io.Discard, nil, nil); err == nil || err.Error() != `a word has no column "ner"` {
		t.Errorf("%v, want an error", err)
	}
}

func TestNoRowIsWrittenAsAComment(t *testing.T) {
	for _, mark := range []string{"#", "# id", "//"} {
		for _, cell := range []string{"#", "#a", "# id", "# id 3", "//", "a # b", "/", ""} {
			for _, f := range []Format{{Type: "csv", Comments: mark}, {Type: "tsv", Comments: mark},
				{Type: "tsv", Quote: "none", Comments: mark}} {
				var out bytes.Buffer
				w, err := NewTableWriter(&out, f, []string{"text", "label"})
				if err != nil {
					t.Fatal(err)
				}
				if w.Write([]any{cell, "x"}) != nil && f.Quote == "none" {
					continue
				}
				if err := w.End(); err != nil {
					t.Fatal(err)
				}
				records, err := Read(&out, "a."+f.Type, f)
				if err != nil || len(records) != 1 || records[0].Fields["text"] != cell {
					t.Errorf("%+v: %q is read as %v, %v", f, cell, records, err)
				}
			}
		}
	}

	// lines that are copied
	f := Format{Type: "conll", Comments: "#"}
	path := filepath.Join(writeFiles(t, "a.conll", "# id 1\n #tag X\nw X\n"), "a.conll")
	w, err := NewSentenceWriter(f, []string{"tags"}, path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var out bytes.Buffer
	if err := w.Write(&out, nil, [][]string{{"Y", "Y"}}); err != nil || out.String() != "# id 1\n #tag Y\nw Y\n" {
		t.Errorf("copied: %q, %v", out.String(), err)
	}
}

// What a SentenceWriter writes is read as it was, or refused.
func TestWrittenSentencesAreReadAgain(t *testing.T) {
	hard := []string{"a b", `"a"`, "'", "a,b", "#a", "#", "-DOCSTART-", "a\tb", "a\nb", "a\r\nb", "a\r", " a", "b ",
		"|", "a|b", "_", "\ufeffa", "é 😀", "\u00a0", "1", "1-2", "%"}
	for _, kind := range []string{"conll", "conllu", "copied", "bars", "blanks", "comments"} {
		for _, cell := range hard {
			for _, cells := range [][2]string{{cell, "X"}, {"w", cell}} {
				f, path := Format{Type: kind}, ""
				if kind == "comments" {
					f = Format{Type: "conll", Comments: "#"}
				} else if kind != "conll" && kind != "conllu" {
					line := map[string]string{"copied": "w X", "bars": "w|X", "blanks": "w X"}[kind]
					f = Format{Type: "conll", Delimiter: map[string]string{"bars": "|", "blanks": " "}[kind]}
					path = filepath.Join(writeFiles(t, "a.conll", line+"\n"+line+"\n"), "a.conll")
					cells[0] = "w"
				}
				w, err := NewSentenceWriter(f, []string{"tags"}, path, strings.Contains(cell, " "))
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				err = w.Write(&out, []string{cells[0], "w"}, [][]string{{cells[1], "X"}})
				w.Close()
				if err != nil {
					if kind == "comments" && strings.HasPrefix(cell, "#") {
						t.Errorf("%q: %v", cells, err)
					}
					continue
				}
				records, err := Read(&out, "a."+f.Type, f)
				want := []string{cells[0], "w", cells[1], "X"}
				if err != nil || len(records) != 1 {
					t.Errorf("%s: %q is read as %v, %v", kind, cells, records, err)
				} else if words, _ := records[0].Fields["words"].([]string); !reflect.DeepEqual(
					append(slices.Clone(words), records[0].Fields["tags"].([]string)...), want) {
					t.Errorf("%s: %q is read as %v", kind, cells, records[0].Fields)
				}
				if strings.ContainsAny(cells[0]+cells[1], "\r\n") {
					t.Errorf("%s: %q is written", kind, cells)
				}
			}
		}
	}
}
