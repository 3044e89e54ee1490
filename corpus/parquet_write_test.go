package corpus

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// writtenRows returns the records of the parquet file of rows, each a JSON list of cells.
func writtenRows(t *testing.T, columns []string, rows ...string) ([]Record, error) {
	t.Helper()
	var file bytes.Buffer
	err := WriteParquet(&file, columns, func(row func(cells []any) error) error {
		for _, text := range rows {
			var cells []any
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&cells); err != nil {
				t.Fatal(err)
			}
			if err := row(cells); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return Read(&file, "a.parquet", Format{})
}

func TestWrittenParquetIsReadAgain(t *testing.T) {
	for _, test := range []struct{ name, rows, want string }{
		{"texts", `["a"] [null] ["ü\u0000"]`, `["a",null,"ü\u0000"]`},
		{"integers", `[1] [-9007199254740991] [null]`, `[1,-9007199254740991,null]`},
		{"numbers", `[1] [0.5] [1e300]`, `[1,0.5,1e+300]`},
		{"integers of more than 64 bits", `[12345678901234567890] [1]`, `["12345678901234567890","1"]`},
		{"numbers and an integer that they would round", `[0.5] [9007199254740993]`, `["0.5","9007199254740993"]`},
		{"an integer that numbers would round", `[9007199254740993] [0.5]`, `["9007199254740993","0.5"]`},
		{"a list of them", `[[0.5, 9007199254740993]] [[1]]`, `["[0.5,9007199254740993]","[1]"]`},
		{"true and false", `[true] [null] [false]`, `[true,null,false]`},
		{"lists of texts", `[["a", null, "b"]] [[]] [null] [["c"]]`, `[["a",null,"b"],[],null,["c"]]`},
		{"lists of numbers", `[[1, 2.5]] [[3]]`, `[[1,2.5],[3]]`},
		{"lists of integers", `[[]] [[1, null]]`, `[[],[1,null]]`},
		{"nothing", `[null] [null]`, `[null,null]`},
		{"empty lists alone", `[[]] [[]]`, `[[],[]]`},
		{"objects", `[{"a": [1]}] [null]`, `["{\"a\":[1]}",null]`},
		{"several types", `["a"] [1] [[true]] [false]`, `["a","1","[true]","false"]`},
		{"lists and others", `[["a"]] ["b"]`, `["[\"a\"]","b"]`},
		{"lists of lists", `[[["a"]]] [["b"]]`, `["[[\"a\"]]","[\"b\"]"]`},
		{"lists of several types", `[["a", 1]] [[2]]`, `["[\"a\",1]","[2]"]`},
		{"larger than any number", `[1e999] [2]`, `["1e999","2"]`},
	} {
		rows := strings.SplitAfter(test.rows, "] [")
		for i := range rows {
			if i > 0 {
				rows[i] = "[" + rows[i]
			}
			rows[i] = strings.TrimSuffix(rows[i], " [")
		}
		records, err := writtenRows(t, []string{"x"}, rows...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []any
		for _, r := range records {
			got = append(got, r.Fields["x"])
		}
		if text := asJSON(t, got); text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}

func TestWrittenParquetHasTheColumnsInTheirOrder(t *testing.T) {
	records, err := writtenRows(t, []string{"z", "a, b", "m"}, `["x", 1, true]`)
	if err != nil || len(records) != 1 || asJSON(t, records[0].Fields) != `{"a, b":1,"m":true,"z":"x"}` {
		t.Errorf("%v, %v", records, err)
	}
	var file bytes.Buffer
	if err := WriteParquet(&file, []string{"z", "a", "m"}, func(func([]any) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	text := file.String()
	z, a, m := strings.LastIndex(text, "\x01z"), strings.LastIndex(text, "\x01a"), strings.LastIndex(text, "\x01m")
	if z < 0 || a < z || m < a {
		t.Errorf("columns z, a and m at bytes %d, %d and %d", z, a, m)
	}
	for _, names := range [][]string{{"a", "a"}, {""}} {
		_, err := writtenRows(t, names, `[]`)
		if err == nil || !strings.Contains(err.Error(), "empty or that of another") {
			t.Errorf("columns %q: %v", names, err)
		}
	}
}
