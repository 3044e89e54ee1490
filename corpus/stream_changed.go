package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

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
