package runfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// CopySplits copies the SplitsFile of a run to another one's folder, if there is one, with the tasks that rename keeps
// and with paths from that folder.
func CopySplits(from, to string, rename func(task string) (name string, kept bool)) error {
	file, err := files.Open(filepath.Join(from, SplitsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var text bytes.Buffer
	lines, all := json.NewEncoder(&text), json.NewDecoder(file)
	lines.SetEscapeHTML(false)
	for {
		var line SplitLine
		err := all.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
		var tasks []string
		for _, task := range line.Tasks {
			if name, kept := rename(task); kept {
				tasks = append(tasks, name)
			}
		}
		if len(tasks) == 0 {
			continue
		}
		line.Tasks = tasks
		if path, err := Resolve(from, line.File); err == nil {
			line.File = filepath.ToSlash(path)
			if relative, err := Relative(to, path); err == nil { // else the data file is gone
				line.File = relative
			}
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return WriteFile(filepath.Join(to, SplitsFile), text.Bytes())
}
