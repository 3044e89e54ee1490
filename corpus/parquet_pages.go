package corpus

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pageChecker finds pages that take more memory than the rows of a file may, or more than they say. parquet-go makes as
// many values as a page says and as its runs have, which few bytes are enough for, and decompresses without a limit.
type pageChecker struct {
	in     io.ReaderAt
	size   int64 // of the file
	room   *parquetRoom
	left   int64 // of the room, in bytes, for values
	leaves []*parquet.Column
}

func checkPages(in io.ReaderAt, file *parquet.File, room *parquetRoom) error {
	p := &pageChecker{in: in, size: file.Size(), room: room, left: room.size}
	for _, c := range file.Root().Columns() {
		p.addLeaves(c)
	}
	for _, group := range file.Metadata().RowGroups {
		for i := range group.Columns {
			if i >= len(p.leaves) {
				return errPages
			}
			if err := p.chunk(&group.Columns[i].MetaData, p.leaves[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

var errPages = errors.New("the parquet file is damaged: a page is not as it says")

func (p *pageChecker) addLeaves(c *parquet.Column) {
	if c.Leaf() {
		p.leaves = append(p.leaves, c)
	}
	for _, child := range c.Columns() {
		p.addLeaves(child)
	}
}

// chunk checks the pages of a column of a row group. What parquet-go does not read either is left to it.
func (p *pageChecker) chunk(m *format.ColumnMetaData, leaf *parquet.Column) error {
	begin := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		begin = m.DictionaryPageOffset
	}
	if begin < 0 || m.TotalCompressedSize < 0 {
		return errPages
	}
	end := begin + m.TotalCompressedSize
	begun, err := p.pages(begin, end, m, leaf)
	if err == nil && !begun {
		_, err = p.pages(m.DataPageOffset, end, m, leaf)
	}
	return err
}

// pages checks the pages between two offsets, and reports whether one begins where the column has its first data page.
func (p *pageChecker) pages(at, end int64, m *format.ColumnMetaData, leaf *parquet.Column) (begun bool, err error) {
	for at >= 0 && at < end {
		header, size := p.header(at, end)
		if size == 0 {
			return begun, nil
		}
		begun = begun || at == m.DataPageOffset
		packed, unpacked := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
		at += size
		if packed < 0 || unpacked < 0 || packed > min(end, p.size)-at {
			return begun, errPages
		}
		if unpacked > p.room.size {
			return begun, p.room.err()
		}
		page := make([]byte, packed)
		if n, err := p.in.ReadAt(page, at); n < len(page) {
			return begun, fmt.Errorf("%w: %w", errPages, err)
		}
		at += packed
		if err := p.page(header, m.Codec, page, leaf); err != nil {
			return begun, err
		}
	}
	return begun, nil
}

// header returns the header of a page at an offset, and its size in bytes, 0 if there is none.
func (p *pageChecker) header(at, end int64) (header *format.PageHeader, size int64) {
	for most := int64(1 << 9); most <= 1<<20; most <<= 11 { // statistics are in it
		data := make([]byte, min(most, end-at))
		n, _ := p.in.ReadAt(data, at)
		from := new(thrift.CompactProtocol).NewReaderFromBytes(data[:n])
		header = &format.PageHeader{}
		if thrift.NewDecoder(from).Decode(header) == nil {
			return header, int64(from.BytesRead())
		}
		if int64(n) < most {
			break
		}
	}
	return nil, 0
}

func (p *pageChecker) page(h *format.PageHeader, codec format.CompressionCodec, data []byte,
	leaf *parquet.Column) error {
	size := int(h.UncompressedPageSize)
	switch h.Type {
	case format.DictionaryPage:
		_, err := decompressed(codec, data, size)
		return err
	case format.DataPage:
		return p.pageV1(&h.DataPageHeader.V, codec, data, size, leaf)
	case format.DataPageV2:
		return p.pageV2(&h.DataPageHeaderV2.V, codec, data, size, leaf)
	}
	return nil
}

func (p *pageChecker) pageV1(v1 *format.DataPageHeader, codec format.CompressionCodec, data []byte, size int,
	leaf *parquet.Column) error {
	data, err := decompressed(codec, data, size)
	n := int(v1.NumValues)
	if err = cmp.Or(err, p.take(n)); err != nil {
		return err
	}
	for _, of := range []struct {
		level    int
		encoding format.Encoding
	}{
		{leaf.MaxRepetitionLevel(), v1.RepetitionLevelEncoding},
		{leaf.MaxDefinitionLevel(), v1.DefinitionLevelEncoding},
	} {
		if of.level == 0 {
			continue
		}
		if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
			return errPages
		}
		levels := data[4 : 4+binary.LittleEndian.Uint32(data)]
		data = data[4+len(levels):]
		if err := checkLevels(levels, of.encoding, of.level, n); err != nil {
			return err
		}
	}
	return p.values(v1.Encoding, data, n)
}

func (p *pageChecker) pageV2(v2 *format.DataPageHeaderV2, codec format.CompressionCodec, data []byte, size int,
	leaf *parquet.Column) error {
	n := int(v2.NumValues)
	repetition, definition := int64(v2.RepetitionLevelsByteLength), int64(v2.DefinitionLevelsByteLength)
	if repetition < 0 || definition < 0 || repetition+definition > int64(len(data)) ||
		repetition+definition > int64(size) {
		return errPages
	}
	if err := p.take(n); err != nil {
		return err
	}
	levels := data[:repetition+definition]
	err := errors.Join(checkLevels(levels[:repetition], format.RLE, leaf.MaxRepetitionLevel(), n),
		checkLevels(levels[repetition:], format.RLE, leaf.MaxDefinitionLevel(), n))
	if err != nil {
		return err
	}
	if v2.IsCompressed.Valid && !v2.IsCompressed.V {
		codec = format.Uncompressed
	}
	if data, err = decompressed(codec, data[len(levels):], size-len(levels)); err != nil {
		return err
	}
	return p.values(v2.Encoding, data, n)
}

// take subtracts the memory of the values of a page.
func (p *pageChecker) take(n int) error {
	if n < 0 {
		return errPages
	}
	if p.left -= int64(n) * parquetValue; p.left < 0 {
		return p.room.err()
	}
	return nil
}

func checkLevels(data []byte, encoding format.Encoding, level, n int) error {
	if encoding != format.RLE {
		return nil // each takes bits of its own
	}
	return checkRuns(data, bits.Len(uint(level)), n)
}

// plainDictionary is PLAIN_DICTIONARY, the older name of RLE_DICTIONARY, which parquet-go deprecates and files have.
const plainDictionary format.Encoding = 2

// values checks that the values of a page are as many as it says: those in an encoding that has runs, or repeats parts.
func (p *pageChecker) values(encoding format.Encoding, data []byte, n int) error {
	switch encoding {
	case format.RLEDictionary, plainDictionary:
		if len(data) == 0 {
			return nil
		}
		return checkRuns(data[1:], int(data[0]), n)
	case format.RLE:
		return checkRuns(data[min(4, len(data)):], 1, n)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray:
		header := data
		for range 2 { // the sizes of blocks
			_, size := binary.Uvarint(header)
			header = header[max(0, size):]
		}
		if total, _ := binary.Uvarint(header); total > uint64(n) {
			return errPages
		}
	}
	if encoding != format.DeltaByteArray {
		return nil
	}
	prefixes, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, data)
	if err != nil {
		return nil // it is not read either
	}
	for _, prefix := range prefixes {
		if p.left -= max(0, int64(prefix)); p.left < 0 {
			return p.room.err()
		}
	}
	return nil
}

// checkRuns returns an error if runs, of one value or of packed ones with a width in bits, have more values than n and
// what fills up the last one: https://parquet.apache.org/docs/file-format/data-pages/encodings, RLE.
func checkRuns(data []byte, width, n int) error {
	const fill = 8 * 63 // parquet-mr packs as many at once
	for all := uint64(0); len(data) > 0; {
		run, size := binary.Uvarint(data)
		if size <= 0 {
			return nil // it is not read either
		}
		count, taken := run>>1, (width+7)/8
		if run&1 != 0 {
			if count > uint64(len(data))+uint64(n) {
				return errPages
			}
			taken = int(count) * width
			count *= 8
		}
		if all += count; all > uint64(n)+fill || count > uint64(n)+fill {
			return errPages
		}
		data = data[min(size+taken, len(data)):]
	}
	return nil
}

// decompressed returns the bytes of a page, an error if they are more than it says.
func decompressed(codec format.CompressionCodec, data []byte, size int) (page []byte, err error) {
	switch codec {
	case format.Snappy:
		if length, n := binary.Uvarint(data); n <= 0 || length > uint64(size) {
			return nil, errPages
		}
		page, err = parquet.Snappy.Decode(nil, data)
	case format.Gzip:
		var from *gzip.Reader
		if from, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			page, err = io.ReadAll(io.LimitReader(from, int64(size)+1))
		}
	case format.Zstd:
		if most := zstdSize(data); most > 4*int64(size)+1<<20 {
			return nil, errPages
		}
		page, err = parquet.Zstd.Decode(nil, data)
	default:
		return data, nil
	}
	if err != nil || len(page) > size {
		return nil, errors.Join(errPages, err)
	}
	return page, nil
}

// zstdSize returns the largest size of what frames of Zstandard decompress to: RFC 8878, section 3.1.1.
func zstdSize(data []byte) (most int64) {
	const (
		magic, skippable = 0xfd2fb528, 0x184d2a50 // the latter without its last four bits
		maxBlock         = 128 << 10
	)
	for len(data) >= 8 {
		switch head := binary.LittleEndian.Uint32(data); {
		case head&^0xf == skippable:
			data = data[min(8+int64(binary.LittleEndian.Uint32(data[4:])), int64(len(data))):]
			continue
		case head != magic:
			return most
		}
		about := data[4]
		size := 1 + []int{0, 1, 2, 4}[about&3] + []int{0, 2, 4, 8}[about>>6]
		if about&0x20 == 0 {
			size++ // the window's size
		} else if about>>6 == 0 {
			size++ // the content's size takes a byte
		}
		data = data[min(4+size, len(data)):]
		for last := false; !last && len(data) >= 3; {
			block := int(data[0]) | int(data[1])<<8 | int(data[2])<<16
			last = block&1 != 0
			taken := block >> 3
			switch block >> 1 & 3 {
			case 0:
				most += int64(taken)
			case 1: // one byte, repeated
				most, taken = most+int64(taken), 1
			default:
				most += maxBlock
			}
			data = data[min(3+taken, len(data)):]
		}
		if about&4 != 0 {
			data = data[min(4, len(data)):] // its checksum
		}
	}
	return most
}
