package run

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
)

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
