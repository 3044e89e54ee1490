package run

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// splitLine is a line of splits.jsonl: the records of a file that are in a split, where split or limit divided it.
type splitLine struct {
	Tasks   []string `json:"tasks"`
	Split   string   `json:"split"`             // or "unused", for what limit leaves out
	File    string   `json:"file"`              // relative to the run folder where it can be, as in experiment.yaml
	Lines   []int    `json:"lines"`             // from 1
	Entries []string `json:"entries,omitempty"` // of lines that hold several records, in the order of lines
}

// writeSplits writes which records of the training files are in which split to folder; nothing where all are in train.
func (r *Run) writeSplits(folder string) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, group := range r.Data.Groups {
		var tasks []string
		for _, number := range group.Tasks {
			tasks = append(tasks, r.experiment().Tasks[number].Name)
		}
		for _, split := range slices.Sorted(maps.Keys(group.Divided)) {
			for _, line := range splitLines(group.Divided[split]) {
				line.Tasks, line.Split = tasks, split
				if relative, err := runfolder.Relative(folder, line.File); err == nil { // else it was a pipe
					line.File = relative
				}
				if err := lines.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.SplitsFile), text.Bytes())
}

// splitLines returns a line for each file that places are in.
func splitLines(places iter.Seq[corpus.Place]) []*splitLine {
	var all []*splitLine
	byFile := map[string]*splitLine{}
	for at := range places {
		line := byFile[at.File]
		if line == nil {
			line = &splitLine{File: at.File}
			byFile[at.File], all = line, append(all, line)
		}
		line.Lines = append(line.Lines, at.Line)
		if at.Entry != "" {
			line.Entries = append(line.Entries, at.Entry)
		}
	}
	return all
}
