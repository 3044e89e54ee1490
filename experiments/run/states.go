package run

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/multitask"
)

// statesPattern names the files of a frozen encoder's states, as os.CreateTemp takes it.
const statesPattern = "jenga-states-*"

// states is a temporary file that is deleted when it is closed.
type states struct {
	f    *os.File
	gone bool // it is unlinked already
}

// openStates creates a file in folder. Where the system allows it, the file is unlinked at once, so that it is deleted
// even if the program is killed.
func openStates(folder string) (multitask.CacheFile, error) {
	f, err := os.CreateTemp(folder, statesPattern)
	if err != nil {
		return nil, err
	}
	return &states{f, os.Remove(f.Name()) == nil}, nil
}

func (s *states) WriteAt(b []byte, at int64) (int, error) { return s.f.WriteAt(b, at) }

func (s *states) ReadAt(b []byte, at int64) (int, error) {
	n, err := s.f.ReadAt(b, at)
	if n < len(b) && err == io.EOF { // the one error of os.File that does not name it
		err = fmt.Errorf("%s: it ends at byte %d of %d", s.f.Name(), at+int64(n), at+int64(len(b)))
	}
	return n, err
}

func (s *states) Close() error {
	err := s.f.Close()
	if !s.gone {
		os.Remove(s.f.Name())
	}
	return err
}

// clearStates deletes the files of states that a killed run left in folder.
func clearStates(folder string) error {
	left, err := fs.Glob(os.DirFS(folder), statesPattern)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
