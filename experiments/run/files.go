package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/multitask"
)

// metricsLog writes the lines of a metrics file.
type metricsLog struct {
	file  *os.File
	lines *json.Encoder
	at    metricsPlace // the end of what is written
	open  bool         // lines are written; before that they are dropped
}

// metricsPlace is a place in a metrics file: the end of a line, and the CRC-32C of all before it.
type metricsPlace struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newMetricsLog returns a log of an empty file.
func newMetricsLog(file *os.File) *metricsLog {
	log := &metricsLog{file: file, open: true}
	log.lines = json.NewEncoder(log)
	return log
}

// Write implements io.Writer for the encoder of lines.
func (m *metricsLog) Write(b []byte) (int, error) {
	n, err := m.file.Write(b)
	m.at.Bytes += int64(n)
	m.at.CRC32C = crc32.Update(m.at.CRC32C, castagnoli, b[:n])
	return n, err
}

// event writes the line of an event.
func (m *metricsLog) event(event any) error {
	if !m.open {
		return nil
	}
	return m.lines.Encode(report.Line(event))
}

// readMetrics returns how far a run has come by its metrics file. Without one it has not begun. With a
// *report.LineError the state is what the other lines say.
func readMetrics(path string) (report.State, error) {
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return report.State{}, nil
	}
	if err != nil {
		return report.State{}, err
	}
	defer file.Close()
	state, err := report.ReadState(file)
	var damaged *report.LineError
	switch {
	case errors.As(err, &damaged):
		err = fmt.Errorf("%s:%d: %w", path, damaged.Line, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return state, err
}

// openMetrics opens the metrics file of a run that is resumed at a place. The file does not change before cut.
func openMetrics(path string, at metricsPlace) (*metricsLog, error) {
	only, err := regular.Open(path) // os.OpenFile opens a named pipe, too
	if err == nil {
		err = only.Close()
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file; restore it from a copy", path)
	}
	if err != nil {
		return nil, err
	}
	sum := crc32.New(castagnoli)
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
	log := newMetricsLog(file)
	log.at, log.open = at, false
	return log, nil
}

// fits reports whether a metrics file has what it had when the checkpoint was written.
func (s *resumption) fits(metrics string) bool {
	log, err := openMetrics(metrics, s.state.Metrics)
	if err == nil {
		err = log.file.Close()
	}
	return err == nil
}

// cut removes the lines after the place at which the run is resumed, and begins to write.
func (m *metricsLog) cut() error {
	if m.open {
		return nil
	}
	m.open = true
	if err := m.file.Truncate(m.at.Bytes); err != nil {
		return err
	}
	_, err := m.file.Seek(m.at.Bytes, io.SeekStart)
	return err
}

// sync writes the file to the disk.
func (m *metricsLog) sync() error { return m.file.Sync() }

// experimentFile is the experiment file of a run that is resumed with another one: it is replaced when there is a
// checkpoint of the new one, since that of the file is resumed from until then.
type experimentFile struct{ was, now []byte }

// replacedExperiment returns what becomes of the experiment file in the folder of a run that is resumed; nil: it stays
// as it is. A file that is gone is written at once.
func (r *Run) replacedExperiment(folder string) (*experimentFile, error) {
	now, err := experimentText(r.experiment(), folder)
	if err != nil {
		return nil, err
	}
	was, err := regular.ReadFile(filepath.Join(folder, runfolder.ExperimentFile), maxExperiment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, r.writeExperiment(folder)
	case err != nil || bytes.Equal(was, now):
		return nil, err
	}
	return &experimentFile{was, now}, nil
}

// replaces returns the text that a checkpoint replaces, "": none.
func (f *experimentFile) replaces() string {
	if f == nil {
		return ""
	}
	return string(f.was)
}

// write replaces the file in a run folder, which has a checkpoint of the new text.
func (f *experimentFile) write(folder string) error {
	if f == nil {
		return nil
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), f.now)
}

// settleExperiment replaces the experiment file in a run folder where a kill has come between the checkpoint and that.
func (s *resumption) settleExperiment() error {
	if s.state.Replaces == "" || s.checkpoint != runfolder.Whole(filepath.Join(s.folder, runfolder.LastDir)) {
		return nil
	}
	text, err := regular.ReadFile(filepath.Join(s.folder, runfolder.ExperimentFile), maxExperiment)
	if err != nil || string(text) != s.state.Replaces {
		return nil // who reads it reports the error
	}
	lock, err := runfolder.Acquire(s.folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	return (&experimentFile{now: []byte(s.state.Experiment)}).write(s.folder)
}

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
