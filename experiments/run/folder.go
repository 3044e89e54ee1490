package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask"
)

// Folder returns the run folder of an experiment: out if it is given, else the output_dir of the file, else
// runs/PROJECT_NAME.
func Folder(e *config.Experiment, out string) string {
	switch {
	case out != "":
		return out
	case e.Training.OutputDir != "":
		return e.Training.OutputDir
	}
	return filepath.Join("runs", e.ProjectName)
}

// CheckFolder returns an error if the run of an experiment cannot be written to folder: if another training writes to
// it, if it holds a run and force is false, if it holds other files, or if its run has the base model or a teacher.
func CheckFolder(e *config.Experiment, folder string, force bool) error {
	if err := runfolder.CheckFree(folder, force); err != nil {
		return err
	}
	if base := cmp.Or(e.Model.BaseRun, e.Model.FromRun); base != nil {
		if err := runfolder.CheckBase(folder, "the base model", base.Model); err != nil {
			return err
		}
	}
	for _, task := range e.Tasks {
		of, alone := e.TeacherOf(task, folder)
		if alone || of.Name == "" {
			continue
		}
		_, saved, err := runfolder.Find(of.Name)
		if err == nil {
			err = runfolder.CheckBase(folder, "a teacher", saved)
		}
		if err != nil {
			return err
		}
	}
	return runfolder.CheckBase(folder, "the base model", e.Model.BaseModel.Name)
}

// replaceFolder moves an earlier run in folder aside, and creates the metrics file and the experiment file.
func (r *Run) replaceFolder(folder string, lock *runfolder.Lock) (metrics *events.Log, err error) {
	if r.Keep {
		if err := lock.CheckFree(false); err != nil {
			return nil, err
		}
	}
	if err := runfolder.SetAside(folder, r.built.EncoderPath); err != nil {
		return nil, err
	}
	if metrics, err = events.CreateLog(filepath.Join(folder, runfolder.MetricsFile)); err != nil {
		return nil, err
	}
	if err := errors.Join(r.writeSplits(folder), r.writeExperiment(folder)); err != nil {
		// otherwise the folder would be neither a run nor empty
		return nil, errors.Join(err, metrics.Close(), runfolder.Clear(folder))
	}
	return metrics, nil
}

func (r *Run) writeExperiment(folder string) error {
	text, err := resume.Text(r.experiment(), folder)
	if err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), text)
}

// replacedExperiment returns the text of the experiment file in the folder of a run that is resumed with another one,
// "" if that is the same. It is replaced when there is a checkpoint of the new one, since that of the file is resumed
// from until then. A file that is gone is written at once.
func (r *Run) replacedExperiment(folder string) (string, error) {
	now, err := resume.Text(r.experiment(), folder)
	if err != nil {
		return "", err
	}
	was, err := files.ReadFile(filepath.Join(folder, runfolder.ExperimentFile), resume.MaxExperiment)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(was) == 0:
		return "", r.writeExperiment(folder)
	case err != nil || bytes.Equal(was, now):
		return "", err
	}
	return string(was), nil
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

func splitLines(places iter.Seq[corpus.Place]) []*runfolder.SplitLine {
	var all []*runfolder.SplitLine
	byFile := map[string]*runfolder.SplitLine{}
	for at := range places {
		line := byFile[at.File]
		if line == nil {
			line = &runfolder.SplitLine{File: at.File}
			byFile[at.File], all = line, append(all, line)
		}
		line.Lines = append(line.Lines, at.Line)
		if at.Entry != "" {
			line.Entries = append(line.Entries, at.Entry)
		}
	}
	return all
}

// states is a temporary file that is deleted when it is closed.
type states struct {
	f    *os.File
	gone bool // it is unlinked already
}

// openStates creates a file in folder. Where the system allows it, the file is unlinked at once, so that it is deleted
// even if the program is killed.
func openStates(folder string) (multitask.CacheFile, error) {
	f, err := os.CreateTemp(folder, runfolder.StatesPattern)
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
