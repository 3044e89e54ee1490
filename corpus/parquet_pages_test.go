package corpus

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// bomb is a parquet file of one row with a list of numbers, all of them in a few bytes.
type bomb struct {
	values      int32 // that its page says
	levels, own int   // of the runs of levels, and of values
	encoding    format.Encoding
	data        []byte // in place of a run
	codec       format.CompressionCodec
	size        int32 // of the page, in place of its own
}

func (b bomb) file(t testing.TB) []byte {
	t.Helper()
	run := func(n int, value ...byte) []byte { return append(binary.AppendUvarint(nil, uint64(n)<<1), value...) }
	levels := func(runs ...[]byte) []byte {
		all := bytes.Join(runs, nil)
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(all))), all...)
	}
	page := append(levels(run(1, 0), run(b.levels-1, 1)), levels(run(b.levels, 1))...)
	if b.data == nil {
		b.data = append([]byte{1}, run(b.own, 0)...)
	}
	page = append(page, b.data...)
	size := int32(len(page))
	if b.size > 0 {
		size = b.size
	}
	switch b.codec {
	case format.Zstd:
		page, _ = parquet.Zstd.Encode(nil, page)
	case format.Gzip:
		page, _ = parquet.Gzip.Encode(nil, page)
	}
	marshal := func(v any) []byte {
		data, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	file := []byte("PAR1")
	dictionary := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: 4, CompressedPageSize: 4}
	dictionary.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: 1, Encoding: format.Plain})
	one := []byte{7, 0, 0, 0}
	switch b.codec {
	case format.Zstd:
		one, _ = parquet.Zstd.Encode(nil, one)
	case format.Gzip:
		one, _ = parquet.Gzip.Encode(nil, one)
	}
	dictionary.CompressedPageSize = int32(len(one))
	file = append(append(file, marshal(&dictionary)...), one...)
	at := int64(len(file))
	header := format.PageHeader{Type: format.DataPage, UncompressedPageSize: size, CompressedPageSize: int32(len(page))}
	header.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: b.values, Encoding: b.encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
	file = append(append(file, marshal(&header)...), page...)
	meta := format.FileMetaData{Version: 1, NumRows: 1, Schema: []format.SchemaElement{
		{Name: "row", NumChildren: thrift.New[int32](1)},
		{Name: "a", Type: thrift.New(format.Int32), RepetitionType: thrift.New(format.Repeated)},
	}, RowGroups: []format.RowGroup{{NumRows: 1, Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
		Type: format.Int32, PathInSchema: []string{"a"}, Codec: b.codec, NumValues: int64(b.values),
		Encoding: []format.Encoding{b.encoding}, DataPageOffset: at, DictionaryPageOffset: 4,
		TotalCompressedSize: int64(len(file)) - 4, TotalUncompressedSize: int64(len(file)) - 4,
	}}}}}}
	footer := marshal(&meta)
	file = append(file, footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
}

// Few bytes that decode to many values are an error before the values are made.
func TestParquetBombsAreErrors(t *testing.T) {
	const (
		n     = 60_000_000
		limit = "the rows take more than 64 MiB of memory"
		lie   = "the parquet file is damaged: a page is not as it says"
	)
	blocks := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, 128), 4), n)
	for name, test := range map[string]struct {
		bomb
		want string
	}{
		"a list of many":              {bomb{values: n, levels: n, own: n, encoding: format.RLEDictionary}, limit},
		"an old name of the encoding": {bomb{values: n, levels: n, own: n, encoding: plainDictionary}, limit},
		"levels of more values":       {bomb{values: 3, levels: n, own: 3, encoding: format.RLEDictionary}, lie},
		"a dictionary's run of more":  {bomb{values: 3, levels: 3, own: n, encoding: format.RLEDictionary}, lie},
		"differences of more": {bomb{values: 3, levels: 3, encoding: format.DeltaBinaryPacked,
			data: append(blocks, 0)}, lie},
		"a page that decompresses to more": {bomb{values: 3, levels: 3, encoding: format.Plain, codec: format.Gzip,
			data: make([]byte, 100<<20), size: 100}, lie},
		"more, by Zstandard": {bomb{values: 3, levels: 3, encoding: format.Plain, codec: format.Zstd,
			data: make([]byte, 100<<20), size: 100}, lie},
		"a page of its size": {bomb{values: 3, levels: 3, encoding: format.Plain, codec: format.Zstd,
			data: make([]byte, 70<<20)}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			file := test.file(t)
			if len(file) > freeSize/maxRatio {
				t.Fatalf("the file has %d bytes, want less, for a limit of 64 MiB", len(file))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read(bytes.NewReader(file), "a.parquet", Format{})
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
				t.Errorf("%d MiB were made of %d bytes", (after.TotalAlloc-before.TotalAlloc)>>20, len(file))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	// what is as it says is read
	for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Gzip, format.Zstd} {
		file := bomb{values: 1000, levels: 1000, own: 1000, encoding: format.RLEDictionary, codec: codec}.file(t)
		records, err := Read(bytes.NewReader(file), "a.parquet", Format{})
		if err != nil || len(records) != 1 || len(records[0].Fields["a"].([]any)) != 1000 {
			t.Errorf("a list of 1000: %v, %v", len(records), err)
		}
	}
}

func TestColumnsOfOneNameAreAnError(t *testing.T) {
	for path, schema := range map[string][]format.SchemaElement{
		"a":   {{Name: "a"}, {Name: "b"}, {Name: "a"}},
		"g.a": {{Name: "g", NumChildren: thrift.New[int32](2)}, {Name: "a"}, {Name: "a"}},
	} {
		file := bomb{values: 1, levels: 1, own: 1, encoding: format.RLEDictionary}.file(t)
		length := binary.LittleEndian.Uint32(file[len(file)-8:])
		begin := len(file) - 8 - int(length)
		var meta format.FileMetaData
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[begin:len(file)-8], &meta); err != nil {
			t.Fatal(err)
		}
		chunk, children := meta.RowGroups[0].Columns[0], int32(0)
		meta.Schema, meta.RowGroups[0].Columns = meta.Schema[:1], nil
		for _, e := range schema {
			e.RepetitionType = thrift.New(format.Optional)
			if e.NumChildren.V == 0 {
				e.Type = thrift.New(format.Int32)
				meta.RowGroups[0].Columns = append(meta.RowGroups[0].Columns, chunk)
			}
			if path == "a" || e.NumChildren.V > 0 {
				children++
			}
			meta.Schema = append(meta.Schema, e)
		}
		meta.Schema[0].NumChildren = thrift.New(children)
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file[:begin], footer...)
		file = append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
		want := "two columns are named \"" + path + "\""
		_, err = Read(bytes.NewReader(file), "a.parquet", Format{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if names, err := parquetNames(bytes.NewReader(file), "a.parquet"); err == nil {
			t.Errorf("the columns are %q", names)
		}
	}
}
