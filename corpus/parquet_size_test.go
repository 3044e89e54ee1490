package corpus

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

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
