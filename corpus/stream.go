package corpus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Stream reads the records of data files by their number, from 0: of records it keeps in memory only where they begin.
// Goroutines may use it at once.
type Stream struct {
	format Format // settled, without Fields
	files  []*streamFile
}

// Places are where the records of a file are, and what the file was when they were found. A record begins where the one
// before ends.
type Places struct {
	Path     string
	Size     int64
	Modified time.Time
	Sum      string
	Columns  []string // of a table with a header
	// Separator of the columns of a conll or conllu file.
	Separator string
	Begin     int64    // offset of the first record, after the header
	Line      int      // of the first record
	Ends      []int64  // offsets after the records
	Lines     []uint32 // of the records; nil: each is on the line after that of the one before
}

type streamFile struct {
	Places
	file    *os.File
	from    int // number of its first record
	classes *classes
}

// add adds the place of the next record.
func (f *streamFile) add(line int, end int64) {
	n := len(f.Ends)
	if n == 0 {
		f.Line = line
	}
	if f.Lines == nil && line != f.Line+n {
		f.Lines = make([]uint32, n)
		for i := range f.Lines {
			f.Lines[i] = uint32(f.Line + i)
		}
	}
	if f.Lines != nil {
		f.Lines = append(f.Lines, uint32(line))
	}
	f.Ends = append(f.Ends, end)
}

var streamable = []string{"jsonl", "csv", "tsv", "conll", "conllu", "fasttext"}

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
// is without Fields. It continues after a mistake in a file, as Open does.
func Scan(ctx context.Context, paths []string, f Format, visit func(r Record, read int64)) (*Stream, error) {
	s, read := &Stream{}, int64(0)
	var mistaken []error
	for _, path := range paths {
		file, err := s.open(path, f)
		if err == nil {
			err = file.scan(ctx, s.format, read, visit)
			read += file.Size
		}
		mistaken = append(mistaken, err)
	}
	if err := cmp.Or(ctx.Err(), errors.Join(mistaken...)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenStream returns the Stream of the files of another, which have the same sizes and times, or sizes and contents,
// since. f is without Fields.
func OpenStream(f Format, files []Places) (*Stream, error) {
	s := &Stream{}
	for _, places := range files {
		file, err := s.open(places.Path, f)
		if err == nil {
			err = file.restore(places)
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Places returns the places of the records of each file, for OpenStream.
func (s *Stream) Places() []Places {
	var files []Places
	for _, f := range s.files {
		files = append(files, f.Places)
	}
	return files
}

func (s *Stream) open(path string, f Format) (*streamFile, error) {
	if err := f.CheckStream(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.format, _ = f.settled(path, false)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file that can be read from any place, as stream: true needs", path)
	}
	beside, err := classesBeside(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	opened := &streamFile{Places{Path: path, Size: info.Size(), Modified: info.ModTime()}, file, s.Len(), beside}
	s.files = append(s.files, opened)
	return opened, nil
}

func (f *streamFile) scan(ctx context.Context, format Format, before int64, visit func(r Record, read int64)) error {
	sum := sha256.New()
	d := newReader(ctx, io.TeeReader(f.file, sum), f.Path, format, &mistakes{})
	d.classes = f.classes
	d.visit = func(r Record) {
		f.add(r.Place.Line, d.end)
		visit(r, before+d.end)
	}
	d.parse()
	f.Begin, f.Columns, f.Separator = d.begin, d.columns, d.separator
	if _, err := d.finish(f.Path); err != nil {
		return err
	}
	if _, err := io.Copy(sum, f.file); err != nil { // after the last record nothing remains, but for a mistake
		return fileError(f.Path, err)
	}
	f.Sum = hex.EncodeToString(sum.Sum(nil))
	return f.unchanged()
}

// restore sets the places that were found in the file before, if it has not changed since.
func (f *streamFile) restore(p Places) error {
	if p.Size != f.Size || len(p.Ends) == 0 || p.Lines != nil && len(p.Lines) != len(p.Ends) || p.Line < 0 {
		return fmt.Errorf("%s: these are places of another file: %w", f.Path, ErrChanged)
	}
	if !p.Modified.Equal(f.Modified) {
		if sum, err := f.sha256(); err != nil || sum != p.Sum {
			return cmp.Or(err, fmt.Errorf("%s: %w", f.Path, ErrChanged))
		}
	}
	before := p.Begin
	for i, end := range p.Ends {
		if end <= before || end > f.Size || before < 0 {
			return fmt.Errorf("%s: record %d ends at byte %d", f.Path, i, end)
		}
		before = end
	}
	p.Modified = f.Modified
	f.Places = p
	return nil
}

// Len returns the number of records.
func (s *Stream) Len() int {
	n := 0
	for _, f := range s.files {
		n += len(f.Ends)
	}
	return n
}

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
	line := f.Line + n
	if f.Lines != nil {
		line = int(f.Lines[n])
	}
	return Place{File: f.Path, Line: line}
}

// Record reads a record, by the names in its file.
func (s *Stream) Record(number int) (Record, error) {
	f, n := s.fileOf(number)
	begin := f.Begin
	if n > 0 {
		begin = f.Ends[n-1]
	}
	if err := f.unchanged(); err != nil {
		return Record{}, err
	}
	length, format := f.Ends[n]-begin, s.format
	format.Warn = nil // Scan has warned
	d := readerOf(io.NewSectionReader(f.file, begin, length), int(min(length, 1<<14)), f.Path, format, &mistakes{})
	d.classes, d.separator = f.classes, f.Separator
	if s.format.Type == "csv" || s.format.Type == "tsv" {
		d.rows(f.Columns, !s.format.NoHeader && len(s.format.Columns) == 0)
	} else {
		d.parse()
	}
	d.endSentence()
	if len(d.records) != 1 {
		return Record{}, fmt.Errorf("%s: the record is not there any more: %w", s.Place(number), d.err(f.Path))
	}
	r := d.records[0]
	r.Place = s.Place(number)
	return r, nil
}

// Close closes the files.
func (s *Stream) Close() {
	for _, f := range s.files {
		f.file.Close()
	}
}

// ErrChanged is wrapped by the errors of a Stream's file whose content is not what it was when the Stream was made.
var ErrChanged = errors.New("the file was changed while stream: true reads it; " +
	"it must stay as it is until training ends")

func (f *streamFile) unchanged() error {
	info, err := f.file.Stat()
	if err != nil {
		return fileError(f.Path, err)
	}
	if info.Size() != f.Size || !info.ModTime().Equal(f.Modified) {
		return fmt.Errorf("%s: %w", f.Path, ErrChanged)
	}
	return nil
}

func (f *streamFile) sha256() (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.file, 0, f.Size)); err != nil {
		return "", fileError(f.Path, err)
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
		if sum != f.Sum {
			return fmt.Errorf("%s: %w", f.Path, ErrChanged)
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
		if there, err := os.Stat(f.Path); err != nil || !os.SameFile(own, there) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}
