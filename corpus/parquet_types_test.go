package corpus

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestParquetTypes reads the files that scripts/fixtures/parquet_types.py has written with pyarrow.
func TestParquetTypes(t *testing.T) {
	want, err := Open("testdata/parquet/types/rows.jsonl", Format{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file          string
		rows, columns int
	}{{"integers", 5, 9}, {"bytes", 5, 9}, {"spark", 3, 1}} {
		got, err := Open("testdata/parquet/types/"+test.file+".parquet", Format{})
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
	if _, err := Open(file, Format{}); err == nil || err.Error() != file+": "+want {
		t.Errorf("a file without rows: %v, want %s", err, want)
	}
}
