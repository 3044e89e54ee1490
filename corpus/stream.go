package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Stream reads the records of data files by their number, from 0: of records it keeps in memory only where they begin.
// Goroutines may use it at once.
type Stream struct {
	format  Format // settled, without Fields
	files   []*streamFile
	readers sync.Pool // of *bufio.Reader
}

// streamFile is a file of a Stream. A record begins where the one before ends.
type streamFile struct {
	path     string
	from     int // number of its first record
	file     *os.File
	size     int64
	modified time.Time
	sum      string   // SHA-256 in hexadecimal
	columns  []string // of a table with a header
	begin    int64    // offset of the first record, after the header
	ends     []int64  // offsets after the records
	line     int      // of the first record
	lines    []uint32 // of the records; nil: each is on the line after that of the one before
}

// scan collects the records of one file.
type scan struct {
	*streamFile
	reader *reader
	before int64 // bytes of the files before
	visit  func(r Record, read int64) error
	err    error // of visit
}

// begin marks the beginning of the first record, after a header with the given columns.
func (s *scan) begin(d *reader, columns []string) { s.streamFile.begin, s.columns = d.offset, columns }

// add adds a record, which the reader has read the last line of.
func (s *scan) add(r Record) {
	n := len(s.ends)
	if n == 0 {
		s.line = r.Place.Line
	}
	if s.lines == nil && r.Place.Line != s.line+n {
		s.lines = make([]uint32, n)
		for i := range s.lines {
			s.lines[i] = uint32(s.line + i)
		}
	}
	if s.lines != nil {
		s.lines = append(s.lines, uint32(r.Place.Line))
	}
	s.ends = append(s.ends, s.reader.offset)
	if s.err = s.visit(r, s.before+s.reader.offset); s.err != nil {
		s.reader.stop()
	}
}

// streamable are the types of files that a Stream reads.
var streamable = []string{"jsonl", "csv", "tsv", "conll", "conllu"}

// CheckStream returns an error if a Stream does not read a file of this format at path.
func (f Format) CheckStream(path string) error {
	if err := f.Check(path); err != nil {
		return err
	}
	f, _ = f.settled(path, false)
	switch {
	case strings.HasSuffix(path, ".gz"):
		return errors.New("a gzip file has no places to read from; unpack it with gunzip")
	case !slices.Contains(streamable, f.Type):
		return fmt.Errorf("format %s is read as a whole; want one of %s", f.Type, strings.Join(streamable, ", "))
	case !f.IsUTF8():
		return fmt.Errorf("encoding %s is read from the beginning; convert the file to utf-8", f.Encoding)
	}
	return nil
}

// Scan reads all records of files once, at least one, and calls visit with each and the number of bytes read so far; f
// is without Fields. It continues after a mistake in a file, as Open does, but not after an error of visit.
func Scan(paths []string, f Format, visit func(r Record, read int64) error) (*Stream, error) {
	s, read := newStream(), int64(0)
	var mistaken []error
	for _, path := range paths {
		if err := f.CheckStream(path); err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.format, _ = f.settled(path, false)
		file, err := openStreamed(path)
		if err == nil {
			file.from = s.Len()
			s.files = append(s.files, file)
			err = file.scan(s.format, read, visit)
			read += file.size
		}
		var stopped *visitError
		if errors.As(err, &stopped) {
			s.Close()
			return nil, stopped.error
		}
		if joined, several := err.(interface{ Unwrap() []error }); several {
			mistaken = append(mistaken, joined.Unwrap()...)
		} else if err != nil {
			mistaken = append(mistaken, err)
		}
	}
	if err := errors.Join(mistaken...); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newStream() *Stream {
	return &Stream{readers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 1<<14) }}}
}

// visitError is an error of the function that visits records.
type visitError struct{ error }

// openStreamed opens a file.
func openStreamed(path string) (*streamFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file that can be read from any place, as stream: true needs", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return &streamFile{path: path, file: file, size: info.Size(), modified: info.ModTime()}, nil
}

// scan reads all records of the file.
func (f *streamFile) scan(format Format, before int64, visit func(r Record, read int64) error) error {
	sum := sha256.New()
	d := newReader(io.TeeReader(f.file, sum), f.path, format, &mistakes{})
	d.scan = &scan{streamFile: f, reader: d, before: before, visit: visit}
	d.scan.begin(d, nil)
	d.parse()
	if d.scan.err != nil {
		return &visitError{d.scan.err}
	}
	if _, err := d.finish(f.path); err != nil {
		return err
	}
	if _, err := io.Copy(sum, f.file); err != nil { // after the last record nothing remains, but for a mistake
		return fileError(f.path, err)
	}
	f.sum = hex.EncodeToString(sum.Sum(nil))
	return f.unchanged()
}

// Len returns the number of records.
func (s *Stream) Len() int {
	n := 0
	for _, f := range s.files {
		n += len(f.ends)
	}
	return n
}

// fileOf returns the file of a record, and its number in it.
func (s *Stream) fileOf(number int) (*streamFile, int) {
	i, found := slices.BinarySearchFunc(s.files, number, func(f *streamFile, n int) int { return f.from - n })
	if !found {
		i--
	}
	return s.files[i], number - s.files[i].from
}

// Place returns the place of a record.
func (s *Stream) Place(number int) Place {
	f, n := s.fileOf(number)
	line := f.line + n
	if f.lines != nil {
		line = int(f.lines[n])
	}
	return Place{File: f.path, Line: line}
}

// Record reads a record, by the names in its file.
func (s *Stream) Record(number int) (Record, error) {
	f, n := s.fileOf(number)
	begin := f.begin
	if n > 0 {
		begin = f.ends[n-1]
	}
	if err := f.unchanged(); err != nil {
		return Record{}, err
	}
	in := s.readers.Get().(*bufio.Reader)
	defer s.readers.Put(in)
	in.Reset(io.NewSectionReader(f.file, begin, f.ends[n]-begin))
	d := &reader{mistakes: &mistakes{}, file: f.path, format: s.format, place: Place{File: f.path}, in: in}
	if s.format.Type == "csv" || s.format.Type == "tsv" {
		d.rows(f.columns, !s.format.NoHeader && len(s.format.Columns) == 0)
	} else {
		d.parse()
	}
	in.Reset(bytes.NewReader(nil))
	if len(d.records) != 1 {
		return Record{}, fmt.Errorf("%s: the record is not there any more: %w", s.Place(number), d.err(f.path))
	}
	r := d.records[0]
	r.Place = s.Place(number)
	return r, nil
}

// Sum returns a checksum of the files' contents, in their order.
func (s *Stream) Sum() string {
	sum := sha256.New()
	for _, f := range s.files {
		io.WriteString(sum, f.sum)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Close closes the files.
func (s *Stream) Close() {
	for _, f := range s.files {
		f.file.Close()
	}
}
