package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// Log writes the lines of a metrics file.
type Log struct {
	file *os.File
	at   Place // the end of what is written
	open bool  // lines are written; before that they are dropped
}

// Place is a place in a metrics file: the end of a line, and the CRC-32C of all before it.
type Place struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// CreateLog creates an empty file at path.
func CreateLog(path string) (*Log, error) {
	file, err := files.Create(path, 0o666)
	if err != nil {
		return nil, err
	}
	return &Log{file: file, open: true}, nil
}

// OpenLog opens the metrics file of a run that is resumed at a place. The file does not change before Cut.
func OpenLog(path string, at Place) (*Log, error) {
	file, err := files.OpenOwn(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file; restore it from a copy", path)
	}
	if err != nil {
		return nil, err
	}
	sum := crc32.New(files.CRC32C)
	n, err := io.Copy(sum, io.NewSectionReader(file, 0, at.Bytes))
	switch {
	case err != nil:
	case n < at.Bytes:
		err = fmt.Errorf("%s: it has %d bytes, and had %d when the checkpoint was written; restore it from a copy",
			path, n, at.Bytes)
	case sum.Sum32() != at.CRC32C:
		err = fmt.Errorf("%s: its first %d bytes are not those that it had when the checkpoint was written: the file "+
			"was changed or damaged; restore it from a copy", path, at.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Log{file: file, at: at}, nil
}

// At returns the end of what is written.
func (l *Log) At() Place { return l.at }

// Write implements io.Writer for the encoder of lines.
func (l *Log) Write(b []byte) (int, error) {
	n, err := l.file.Write(b)
	l.at.Bytes += int64(n)
	l.at.CRC32C = crc32.Update(l.at.CRC32C, files.CRC32C, b[:n])
	return n, err
}

// Event writes the line of an event.
func (l *Log) Event(event train.Event) error {
	if !l.open {
		return nil
	}
	return json.NewEncoder(l).Encode(Line(event))
}

// Cut removes the lines after the place at which the run is resumed, and begins to write.
func (l *Log) Cut() error {
	if l.open {
		return nil
	}
	if err := l.file.Truncate(l.at.Bytes); err != nil {
		return err
	}
	_, err := l.file.Seek(l.at.Bytes, io.SeekStart)
	l.open = err == nil // else the next line would be written over the first ones
	return err
}

// Keep writes all lines to path again, where the file was, if someone has removed it since.
func (l *Log) Keep(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := files.Create(path, 0o666)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, io.NewSectionReader(l.file, 0, l.at.Bytes)); err != nil {
		return errors.Join(err, file.Close())
	}
	err = l.file.Close()
	l.file = file
	return err
}

// Sync writes the file to the disk.
func (l *Log) Sync() error { return l.file.Sync() }

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
