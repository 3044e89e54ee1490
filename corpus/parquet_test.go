package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestParquetRows reads the files that scripts/fixtures/parquet.py has written with pyarrow.
func TestParquetRows(t *testing.T) {
	want, err := Open(t.Context(), "testdata/parquet/rows.jsonl", Format{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/parquet/*.parquet")
	if err != nil || len(files) != 4 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, file := range files {
		got, err := Open(t.Context(), file, Format{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d rows, want %d", file, len(got), len(want))
			continue
		}
		for i, r := range got {
			if place := fmt.Sprintf("%s:%d", file, i+1); r.Place.String() != place {
				t.Errorf("place %s, want %s", r.Place, place)
			}
			for name, value := range want[i].Fields {
				if have, wanted := asJSON(t, r.Fields[name]), asJSON(t, value); have != wanted {
					t.Errorf("%s: row %d: %s is %s, want %s", file, i+1, name, have, wanted)
				}
			}
		}
	}
}

// asJSON writes a field with its numbers by their values.
func asJSON(t *testing.T, field any) string {
	t.Helper()
	text, err := json.Marshal(field)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(value); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAParquetFileHasTheExamplesOfJSONLines(t *testing.T) {
	for _, format := range []Format{{}, {Fields: map[string]string{"text": "answers.text"}}} {
		lines, linesErr := Open(t.Context(), "testdata/parquet/rows.jsonl", format)
		rows, rowsErr := Open(t.Context(), "testdata/parquet/snappy.parquet", format)
		if linesErr != nil || rowsErr != nil {
			t.Fatal(linesErr, rowsErr)
		}
		for i := range lines {
			want, _, wantErr := lines[i].Strings("text")
			got, _, gotErr := rows[i].Strings("text")
			if fmt.Sprint(got, gotErr == nil) != fmt.Sprint(want, wantErr == nil) {
				t.Errorf("row %d: texts %q, %v, want %q, %v", i, got, gotErr, want, wantErr)
			}
		}
	}
}

func TestBadParquetFilesAreErrors(t *testing.T) {
	whole, err := os.ReadFile("testdata/parquet/snappy.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.parquet", nil, "a.parquet: the file is not a whole parquet file"},
		{"a.parquet", []byte("text,label\n"), "a.parquet: the file is not a whole parquet file; it begins with " +
			`"text,label\n": format: csv, or another TYPE, reads a file of text`},
		{"a.parquet", whole[:len(whole)/2], "a.parquet: the file is not a whole parquet file"},
		{"a.parquet.gz", whole, "a parquet file is compressed itself"},
	} {
		if _, err := Read(bytes.NewReader(test.data), test.name, Format{}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s of %d bytes: error %v, want %s", test.name, len(test.data), err, test.want)
		}
	}
	for i := 0; i < len(whole); i += 7 { // a byte changed: an error or other rows, but no panic
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x55
		Read(bytes.NewReader(damaged), "a.parquet", Format{})
		parquetNames(bytes.NewReader(damaged), "a.parquet")
	}
}

// lz4Codec returns plain.parquet with LZ4_RAW as the codec of one of its columns: its Thrift number is at byte 1233.
func lz4Codec(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/parquet/plain.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if data[1233] != 0 {
		t.Fatalf("byte 1233 is %d, want 0, of UNCOMPRESSED", data[1233])
	}
	data[1233] = 2 * 7 // 7 in zigzag encoding
	return data
}

func TestAnotherCodecIsAnError(t *testing.T) {
	_, err := Read(bytes.NewReader(lz4Codec(t)), "a.parquet", Format{})
	want := "is compressed by LZ4_RAW; want one of SNAPPY, GZIP, ZSTD, UNCOMPRESSED"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func FuzzParquet(f *testing.F) {
	var files []string
	for _, pattern := range []string{"testdata/parquet/*.parquet", "testdata/parquet/types/*.parquet"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, matches...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(lz4Codec(f))
	f.Fuzz(func(t *testing.T, data []byte) { Read(bytes.NewReader(data), "a.parquet", Format{}) })
}

// BenchmarkParquetLists reads a list of 2000 numbers in rows with 1 and with 100 other columns.
func BenchmarkParquetLists(b *testing.B) {
	for _, others := range []int{1, 100} {
		group := parquet.Group{"a": parquet.Repeated(parquet.Leaf(parquet.Int32Type))}
		for i := range others {
			group[fmt.Sprintf("b%03d", i)] = parquet.Leaf(parquet.Int32Type)
		}
		var row parquet.Row
		for i := range 2000 {
			row = append(row, parquet.Int32Value(1).Level(min(i, 1), 1, 0))
		}
		for i := range others {
			row = append(row, parquet.Int32Value(1).Level(0, 0, 1+i))
		}
		var file bytes.Buffer
		w := parquet.NewWriter(&file, parquet.NewSchema("row", group))
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			for b.Loop() {
				if _, err := Read(bytes.NewReader(file.Bytes()), "a.parquet", Format{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A name in the metadata that is none is an error with the file's name.
func TestParquetNamesOfLabelsThatAreNone(t *testing.T) {
	type row struct {
		Text  string `parquet:"text"`
		Label int    `parquet:"label"`
	}
	for names, want := range map[string]string{
		`"a", null`: "the name of label 1 is null", `"", "b"`: "the name of label 0 is an empty text",
		`"a", 7`: "the name of label 1 is a number", `"a"`: "label 1 has no name",
		`"a", "a"`: `the name of label 1 is "a", as that of label 0`,
	} {
		var file bytes.Buffer
		w := parquet.NewGenericWriter[row](&file, parquet.KeyValueMetadata(classesKey,
			`{"features": {"label": {"names": [`+names+`], "_type": "ClassLabel"}}}`))
		if _, err := w.Write([]row{{"so", -1}, {"no", 1}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		example := func(f Format) error {
			records, err := Read(bytes.NewReader(file.Bytes()), "a.parquet", f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = records[1].Example()
			return err
		}
		if err := example(Format{}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "in the metadata of a.parquet; label_maps: {HEAD: ") {
			t.Errorf("error %v, want %q", err, want)
		}
		if err := example(Format{Numbers: true}); err != nil { // as label_maps set it
			t.Error(err)
		}
	}
}

// written returns a parquet file of the rows.
func written[Row any](t *testing.T, rows []Row) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[Row](&file, parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// Only a panic where the file is decoded says that the file is damaged.
func TestAPanicOfOursIsNoDamage(t *testing.T) {
	data := written(t, []struct{ A string }{{"a"}, {"b"}})
	d := readerOf(strings.NewReader(""), 0, "a.parquet", Format{Type: "parquet"}, &mistakes{})
	d.visit = func(Record) { panic("ours") }
	defer func() {
		if r := recover(); r != "ours" {
			t.Errorf("recovered %v, want the panic of visit", r)
		}
	}()
	t.Errorf("parquet returned %v, want a panic", d.parquet(t.Context(), bytes.NewReader(data)))
}

func TestManySmallRowsOfParquetAreAnError(t *testing.T) {
	type inner struct{ B, C *string }
	const want = "a.parquet: the rows take more than 64 MiB of memory, which is the limit for a file of this size: " +
		"100 times the size, and at least 64 MiB; save it as several files, or as jsonl"
	// 200 000 rows or objects of 400 bytes and more each
	for name, file := range map[string][]byte{
		"rows":    written(t, make([]struct{ A *string }, 200_000)),
		"objects": written(t, []struct{ A []inner }{{make([]inner, 200_000)}}),
	} {
		if len(file) > freeSize/maxRatio {
			t.Errorf("%s: the file has %d bytes, want less, for a limit of 64 MiB", name, len(file))
		}
		_, err := Read(bytes.NewReader(file), "a.parquet", Format{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

func TestAParquetRecordHasALimit(t *testing.T) {
	type row struct{ A string }
	file := written(t, []row{{"a"}, {strings.Repeat("x", maxRecord)}, {"b"}})
	_, err := Read(bytes.NewReader(file), "a.parquet", Format{})
	if want := "a.parquet:2: the record has more than 16 MiB; want smaller ones"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestParquetTypes reads the files that scripts/fixtures/parquet_types.py has written with pyarrow.
func TestParquetTypes(t *testing.T) {
	want, err := Open(t.Context(), "testdata/parquet/types/rows.jsonl", Format{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file          string
		rows, columns int
	}{{"integers", 5, 9}, {"bytes", 5, 9}, {"spark", 3, 1}} {
		got, err := Open(t.Context(), "testdata/parquet/types/"+test.file+".parquet", Format{})
		if err != nil || len(got) != test.rows || len(got[0].Fields) != test.columns {
			t.Errorf("%s: %d rows, %v, want %d rows of %d columns", test.file, len(got), err, test.rows, test.columns)
			continue
		}
		for i, r := range got {
			for name, value := range r.Fields {
				if have, wanted := fmt.Sprint(value), fmt.Sprint(want[i].Fields[name]); have != wanted {
					t.Errorf("%s: row %d: %s is %s, want %s", test.file, i+1, name, have, wanted)
				}
			}
		}
	}
}

func TestTypesOfOtherBytes(t *testing.T) {
	id := []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	for _, test := range []struct {
		node  parquet.Node
		bytes []byte
		want  string // field or error
	}{
		{parquet.UUID(), id, "01234567-89ab-cdef-0123-456789abcdef"}, // RFC 9562, section 4
		{parquet.Decimal(2, 9, parquet.ByteArrayType), []byte{0xff, 0x38}, "-2.00"},
		{parquet.Decimal(0, 9, parquet.ByteArrayType), []byte{0x00, 0xc8}, "200"},
		{parquet.Decimal(2, 9, parquet.ByteArrayType), bytes.Repeat([]byte{1}, 33), "want at most 32 and 76"},
		{parquet.Decimal(77, 78, parquet.ByteArrayType), []byte{1},
			"77 digits after the point; want at most 32 and 76"},
		{parquet.JSON(), []byte(`{"a": 1}`), `{"a": 1}`},
		{parquet.Leaf(parquet.ByteArrayType), []byte("ab"), "ab"},
		{parquet.Leaf(parquet.ByteArrayType), []byte{0xff}, "<nil>"},
		{parquet.String(), []byte{0xff}, `column "v" is not UTF-8`},
		{parquet.BSON(), []byte("ab"), `column "v" is BSON, which is not read; save the file without it, or the`},
	} {
		var file bytes.Buffer
		w := parquet.NewWriter(&file, parquet.NewSchema("row", parquet.Group{"v": test.node}))
		row := parquet.Row{parquet.ByteArrayValue(test.bytes).Level(0, 0, 0)}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		records, err := Read(&file, "a.parquet", Format{})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(records[0].Fields["v"])
		}
		if err == nil && got != test.want || !strings.Contains(got, test.want) {
			t.Errorf("%v of bytes %x: %s, want %s", test.node, test.bytes, got, test.want)
		}
	}
}

func TestAGroupWithoutRowsHasNoRecords(t *testing.T) {
	const file, want = "testdata/parquet/types/empty.parquet", "no records; want at least one"
	if _, err := Open(t.Context(), file, Format{}); err == nil || err.Error() != file+": "+want {
		t.Errorf("a file without rows: %v, want %s", err, want)
	}
}

// writtenRows returns the records of the parquet file of rows, each a JSON list of cells.
func writtenRows(t *testing.T, columns []string, rows ...string) ([]Record, error) {
	t.Helper()
	file, err := writtenFile(t, columns, rows...)
	if err != nil {
		return nil, err
	}
	return Read(file, "a.parquet", Format{})
}

func writtenFile(t *testing.T, columns []string, rows ...string) (*bytes.Buffer, error) {
	t.Helper()
	var file bytes.Buffer
	table, err := NewTableWriter(&file, Format{Type: "parquet"}, columns)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, text := range rows {
		var cells []any
		if _, err := unmarshal([]byte(text), &cells, "the row"); err != nil {
			t.Fatal(err)
		}
		if err := table.Write(cells); err != nil {
			return nil, err
		}
	}
	return &file, table.End()
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
	file, err := writtenFile(t, []string{"z", "a", "m"})
	if err != nil {
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
