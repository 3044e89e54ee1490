package runfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/jenga-nlp/jenga/internal/files"
)

// SplitLine is a line of SplitsFile: the records of a file that are in a split, where split or limit divided it.
type SplitLine struct {
	Tasks   []string `json:"tasks"`
	Split   string   `json:"split"`             // or "unused", for what limit leaves out
	File    string   `json:"file"`              // relative to the run folder where it can be, as in experiment.yaml
	Lines   []int    `json:"lines"`             // from 1
	Entries []string `json:"entries,omitempty"` // of lines that hold several records, in the order of lines
}

// maxSplits bounds the size in bytes of a SplitsFile: some 30 million records. A test has a smaller one.
var maxSplits int64 = 256 << 20

// ReadSplits calls visit with each line of the SplitsFile of a run, if there is one, with File as a path.
func ReadSplits(run string, visit func(SplitLine) error) error {
	file, err := files.Open(filepath.Join(run, SplitsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	bounded := &io.LimitedReader{R: file, N: maxSplits + 1}
	for all := json.NewDecoder(bounded); ; {
		var line SplitLine
		err := all.Decode(&line)
		switch {
		case bounded.N == 0:
			err = fmt.Errorf("it has more than %d bytes", maxSplits)
		case errors.Is(err, io.EOF):
			return nil
		}
		if err == nil {
			if path, err := Resolve(run, line.File); err == nil {
				line.File = path
			}
			err = visit(line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
}

// Records returns the lines of the records in a SplitLine, each with its entry, "" for the only one of its line.
func (s SplitLine) Records() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, line := range s.Lines {
			entry := ""
			if len(s.Entries) == len(s.Lines) {
				entry = s.Entries[i]
			}
			if !yield(line, entry) {
				return
			}
		}
	}
}

// CopySplits copies the SplitsFile of a run to another one's folder, if there is one, with the tasks that rename keeps
// and with paths from that folder.
func CopySplits(from, to string, rename func(task string) (name string, kept bool)) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	err := ReadSplits(from, func(line SplitLine) error {
		var tasks []string
		for _, task := range line.Tasks {
			if name, kept := rename(task); kept {
				tasks = append(tasks, name)
			}
		}
		if len(tasks) == 0 {
			return nil
		}
		line.Tasks, line.File = tasks, filepath.ToSlash(line.File)
		if relative, err := Relative(to, filepath.FromSlash(line.File)); err == nil { // else the data file is gone
			line.File = relative
		}
		return lines.Encode(line)
	})
	if err != nil || text.Len() == 0 {
		return err
	}
	return WriteFile(filepath.Join(to, SplitsFile), text.Bytes())
}
