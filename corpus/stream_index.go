package corpus

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

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
