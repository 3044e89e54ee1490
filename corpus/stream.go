package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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

// fileIndex describes a file of a Stream in its index, where the ends of its records follow, 8 bytes each, and their
// lines, 4 bytes each, if they do not follow from their numbers.
type fileIndex struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Sum      string    `json:"sha256"`
	Columns  []string  `json:"columns,omitempty"`
	Begin    int64     `json:"begin"`
	Line     int       `json:"line"`
	Records  int       `json:"records"`
	Lines    bool      `json:"lines"`
}

// maxIndexHeader is the largest size of the description of a Stream's files, in bytes.
const maxIndexHeader = 64 << 20

// WriteIndex writes where the records of the files are, for OpenStream.
func (s *Stream) WriteIndex(w io.Writer) error {
	var files []fileIndex
	for _, f := range s.files {
		files = append(files, fileIndex{f.path, f.size, f.modified, f.sum, f.columns, f.begin, f.line, len(f.ends),
			f.lines != nil})
	}
	header, err := json.Marshal(files)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(header))))
	out.Write(header)
	for _, f := range s.files {
		if err := errors.Join(WriteNumbers(out, f.ends), WriteNumbers(out, f.lines)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// errStale is the error of an index of other files.
var errStale = errors.New("the index is of other files")

// OpenStream returns the Stream of files whose index WriteIndex has written, if they have not changed since: they have
// the same sizes and times, or sizes and contents. The index is read from r, which has size bytes.
func OpenStream(paths []string, f Format, r io.Reader, size int64) (*Stream, error) {
	s := newStream()
	err := s.readIndex(paths, f, r, size)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) readIndex(paths []string, f Format, r io.Reader, size int64) error {
	// description
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxIndexHeader || int64(n) > size {
		return fmt.Errorf("a header of %d bytes", n)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return err
	}
	var files []fileIndex
	if err := json.Unmarshal(header, &files); err != nil {
		return err
	}
	if !slices.EqualFunc(files, paths, func(f fileIndex, path string) bool { return f.Path == path }) {
		return errStale
	}

	// files
	for _, about := range files {
		if err := f.CheckStream(about.Path); err != nil {
			return err
		}
		s.format, _ = f.settled(about.Path, false)
		file, err := openStreamed(about.Path)
		if err != nil {
			return err
		}
		file.from = s.Len()
		s.files = append(s.files, file)
		if err := file.restore(about, r, size); err != nil {
			return err
		}
	}
	return nil
}

// restore sets what an index says of the file.
func (f *streamFile) restore(about fileIndex, r io.Reader, size int64) error {
	switch {
	case about.Size != f.size:
		return errStale
	case about.Records < 1 || int64(about.Records) > min(size/8, f.size) || about.Line < 0:
		return fmt.Errorf("%d records in a file of %d bytes", about.Records, f.size)
	case !about.Modified.Equal(f.modified):
		switch sum, err := f.sha256(); {
		case err != nil:
			return err
		case sum != about.Sum:
			return errStale
		}
	}
	f.sum, f.columns, f.begin, f.line = about.Sum, about.Columns, about.Begin, about.Line
	f.ends = make([]int64, about.Records)
	if err := ReadNumbers(r, f.ends); err != nil {
		return err
	}
	if about.Lines {
		f.lines = make([]uint32, about.Records)
		if err := ReadNumbers(r, f.lines); err != nil {
			return err
		}
	}
	for before, i := f.begin, 0; i < len(f.ends); i++ {
		if f.ends[i] <= before || f.ends[i] > f.size || before < 0 {
			return fmt.Errorf("record %d ends at byte %d", i, f.ends[i])
		}
		before = f.ends[i]
	}
	return nil
}

// numbersAtOnce is how many numbers of an index are converted at once.
const numbersAtOnce = 1 << 13

// WriteNumbers writes numbers, little-endian.
func WriteNumbers[N int32 | uint32 | int64](w io.Writer, numbers []N) error {
	for some := range slices.Chunk(numbers, numbersAtOnce) {
		if err := binary.Write(w, binary.LittleEndian, some); err != nil {
			return err
		}
	}
	return nil
}

// ReadNumbers fills numbers with those that WriteNumbers has written.
func ReadNumbers[N int32 | uint32 | int64](r io.Reader, numbers []N) error {
	for some := range slices.Chunk(numbers, numbersAtOnce) {
		if err := binary.Read(r, binary.LittleEndian, some); err != nil {
			return err
		}
	}
	return nil
}

// ErrChanged is wrapped by the errors of a Stream's file whose content is not what it was when the Stream was made.
var ErrChanged = errors.New("the file was changed while stream: true reads it; " +
	"it must stay as it is until training ends")

// unchanged returns an error if the file has another size or time of change than when it was opened.
func (f *streamFile) unchanged() error {
	info, err := f.file.Stat()
	if err != nil {
		return fileError(f.path, err)
	}
	if info.Size() != f.size || !info.ModTime().Equal(f.modified) {
		return fmt.Errorf("%s: %w", f.path, ErrChanged)
	}
	return nil
}

// sha256 computes the SHA-256 of the file's content, in hexadecimal.
func (f *streamFile) sha256() (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.file, 0, f.size)); err != nil {
		return "", fileError(f.path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Verify reads the files, and returns an error if one has another SHA-256 than when its records were found: its size
// and time may be the same.
func (s *Stream) Verify() error {
	for _, f := range s.files {
		sum, err := f.sha256()
		if err != nil {
			return err
		}
		if sum != f.sum {
			return fmt.Errorf("%s: %w", f.path, ErrChanged)
		}
	}
	return nil
}

// Replaced returns the paths that do not name the files that are read any more: another file has been renamed to them,
// or they were deleted. Records are still read from the files that were opened.
func (s *Stream) Replaced() []string {
	var paths []string
	for _, f := range s.files {
		own, err := f.file.Stat()
		if err != nil {
			continue // it is closed
		}
		if there, err := os.Stat(f.path); err != nil || !os.SameFile(own, there) {
			paths = append(paths, f.path)
		}
	}
	return paths
}
