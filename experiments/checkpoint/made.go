package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// Made is a run that is made of others, and not trained: of several whose tasks have an encoder in common, or of one
// whose encoder is quantized. Paths in the description of Model are such that they can be opened: Write makes them
// relative to the run's folder.
type Made struct {
	Experiment *config.Experiment
	Model      Model
	// Origin is JSON about where the encoder of Model is from, which the run has beside its checkpoints, as the base
	// model of its experiment; nil: its checkpoints have it, or their description says where it is.
	Origin []byte
	Best   bool     // it has no last checkpoint beside the best
	Inputs []string // files and folders that it is made of, which the run's folder must not hold

	// What it takes over, if that has it: the splits.jsonl of a run, and the calibration of a checkpoint with the same
	// weights of heads; "": none. Rename returns the names of tasks that it keeps; nil: it keeps all.
	Splits, Calibration string
	Rename              func(task string) (name string, kept bool)

	// Check returns an error if the run, which is written, is of no use; nil for none.
	Check func() error
}

// metrics is the metrics file of a run whose training is over before it begins.
var metrics = []byte(`{"event":"done","best":null,"seconds":0,"folder":"."}` + "\n")

// CheckMade returns an error if no run that is made of others can be written to folder: another training writes to it,
// it holds a run and force is false, it holds other files or cannot be written, or it is, holds or lies in an input.
func CheckMade(folder string, force bool, inputs []string) error {
	if err := runfolder.CheckApart(folder, inputs); err != nil {
		return err
	}
	if err := runfolder.CheckFree(folder, force); err != nil {
		return err
	}
	return runfolder.CheckNew(folder)
}

// Write writes the run to folder, in place of an earlier one if force is true, which is left as it was on an error. Of
// the new run nothing is left then, nor of a folder that there was not.
func (m Made) Write(ctx context.Context, folder string, force bool) error {
	return writeMade(folder, force, m.Inputs, func() error {
		if err := m.writeFiles(ctx, folder); err != nil || m.Check == nil {
			return err
		}
		return m.Check()
	})
}

// writeMade writes a run as Made.Write does, by write.
func writeMade(folder string, force bool, inputs []string, write func() error) (err error) {
	// before a lock file is created or removed
	if err := CheckMade(folder, force, inputs); err != nil {
		return err
	}

	// folder, which is this run's alone
	if !runfolder.Exists(folder) {
		defer func() {
			if err != nil {
				os.Remove(folder) // if it is empty
			}
		}()
	}
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := lock.CheckFree(force); err != nil { // another may have written a run meanwhile
		return err
	}
	if err := runfolder.SetAside(folder, ""); err != nil {
		return errors.Join(err, runfolder.Abandon(folder))
	}

	// the run, and in its place the earlier one where it fails
	if err = write(); err != nil {
		cleared := errors.Join(runfolder.Clear(folder), os.RemoveAll(filepath.Join(folder, runfolder.EncoderDir)))
		if cleared != nil {
			return errors.Join(err, cleared)
		}
	}
	return errors.Join(err, runfolder.Abandon(folder))
}

// writeFiles writes the files of the run to folder, the experiment, which makes it a run, last.
func (m Made) writeFiles(ctx context.Context, folder string) (err error) {
	// encoder
	if m.Origin != nil {
		if m.Model.About.Encoder, err = m.writeEncoder(ctx, filepath.Join(folder, runfolder.EncoderDir)); err != nil {
			return err
		}
		m.Model.Encoder = nil
	}
	if encoder := &m.Model.About.Encoder; !encoder.Copied() {
		m.Experiment.Model.SetBase(encoder.Folder)
		if encoder.Folder, err = runfolder.Relative(folder, encoder.Folder); err != nil {
			return err
		}
	}
	if quantized := m.Model.About.Quantized; quantized != nil {
		quantized.Run = relativeTo(folder, quantized.Run)
	}
	if base := m.Model.About.Base; base != nil {
		moved := *base
		moved.Folder = relativeTo(folder, base.Folder)
		m.Model.About.Base = &moved
	}

	// checkpoint
	best := filepath.Join(folder, runfolder.BestDir)
	first := filepath.Join(folder, runfolder.LastDir)
	if m.Best {
		first = best
	}
	if err := runfolder.Replace(first, func(fresh string) error { return m.Model.Write(ctx, fresh) }); err != nil {
		return err
	}
	if first != best {
		if err := runfolder.Link(first, best); err != nil {
			return err
		}
	}

	if err := m.takeOver(ctx, folder, best); err != nil {
		return err
	}
	if err := runfolder.WriteFile(filepath.Join(folder, runfolder.MetricsFile), metrics); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := m.Experiment.Write(&text, folder); err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), text.Bytes())
}

func (m Made) takeOver(ctx context.Context, folder, best string) error {
	if m.Rename == nil {
		m.Rename = func(task string) (string, bool) { return task, true }
	}
	if m.Splits != "" {
		if err := runfolder.CopySplits(m.Splits, folder, m.Rename); err != nil {
			return err
		}
	}
	if m.Calibration == "" {
		return nil
	}
	return copyCalibration(ctx, m.Calibration, best, m.Rename)
}

// relativeTo returns a path relative to a folder, of what is gone an absolute one.
func relativeTo(folder, path string) string {
	relative, err := runfolder.Relative(folder, path)
	if err == nil {
		return relative
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return filepath.ToSlash(path)
}

// writeEncoder writes the encoder to a folder, and returns its location there, with the sums of its files.
func (m Made) writeEncoder(ctx context.Context, folder string) (Encoder, error) {
	err := runfolder.Replace(folder, func(fresh string) error {
		if err := m.Model.saveEncoder(fresh); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(fresh, runfolder.MergeFile), m.Origin, 0o644)
	})
	if err != nil {
		return Encoder{}, err
	}
	names, err := runfolder.Files(folder)
	if err != nil {
		return Encoder{}, err
	}
	for i, name := range names {
		names[i] = filepath.Join(folder, name)
	}
	return SumFiles(ctx, folder, names, true)
}
