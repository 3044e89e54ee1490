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
	want, err := Open("testdata/parquet/rows.jsonl", Format{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/parquet/*.parquet")
	if err != nil || len(files) != 4 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, file := range files {
		got, err := Open(file, Format{})
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
		lines, linesErr := Open("testdata/parquet/rows.jsonl", format)
		rows, rowsErr := Open("testdata/parquet/snappy.parquet", format)
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
		{"a.parquet", []byte("text,label\n"), "a.parquet: the file is not a whole parquet file"},
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
