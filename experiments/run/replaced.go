package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// What replaces a run moves it to runfolder.ReplacedDir in its folder, and removes it when the new run has a best
// checkpoint and its experiment file: a training writes that first, what makes a run of others last. The earlier run's
// is moved last, and is the first to be moved back: while it is in ReplacedDir, the files outside are the new run's.

var (
	// ownNames are the files and folders that each run has, the experiment file last.
	ownNames = append(slices.Clone(trained), runfolder.ExperimentFile)
	// replacedNames are those and the encoder of a merged run.
	replacedNames = append([]string{runfolder.EncoderDir}, ownNames...)
)

// setAside moves the run in folder aside. A run without a model, or what a kill has left of one that had no experiment
// file yet, is removed. The encoder of a merged run is left where it is base, the base model of the new run.
func setAside(folder, base string) error {
	names, encoder := replacedNames, filepath.Join(folder, runfolder.EncoderDir)
	if isWithin(encoder, base) {
		names = ownNames
	}
	if !runfolder.HasModel(folder) || !runfolder.Exists(filepath.Join(folder, runfolder.ExperimentFile)) {
		if len(names) > len(ownNames) {
			if err := os.RemoveAll(encoder); err != nil {
				return err
			}
		}
		return clearFolder(folder)
	}
	if err := clearStates(folder); err != nil {
		return err
	}
	return moveFiles(folder, filepath.Join(folder, runfolder.ReplacedDir), names)
}

// isWithin reports whether a file or folder that exists, path, is folder or lies in it; "" does not.
func isWithin(folder, path string) bool {
	if path == "" {
		return false
	}
	folder, err := runfolder.RealPath(folder)
	if err != nil {
		return false
	}
	if path, err = runfolder.RealPath(path); err != nil {
		return false
	}
	within, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(within)
}

// settle ends the replacement of a run in folder: it removes the earlier run if the new one has a best model, and moves
// it back, in place of what there is of the new one, if that has none at all. With a last model alone the new one was
// interrupted and can be resumed: both are left. It does so, too, where a kill has ended a training or settle.
func settle(folder string) error {
	moved := runfolder.Exists(filepath.Join(folder, runfolder.ReplacedDir, runfolder.ExperimentFile)) // as a whole
	if moved && runfolder.HasModel(folder) && !runfolder.HasBest(folder) {
		return nil
	}
	return abandon(folder)
}

// abandon is settle for a new run: of one that was interrupted before it had a best model and its experiment file, and
// that would have replaced an earlier one, nothing is left.
func abandon(folder string) error {
	aside := filepath.Join(folder, runfolder.ReplacedDir)
	removed := aside + runfolder.OldSuffix
	if err := os.RemoveAll(removed); err != nil || !runfolder.Exists(aside) {
		return err
	}
	if runfolder.Exists(filepath.Join(aside, runfolder.ExperimentFile)) {
		if runfolder.HasBest(folder) && runfolder.Exists(filepath.Join(folder, runfolder.ExperimentFile)) {
			if err := os.Rename(aside, removed); err != nil {
				return err
			}
			return os.RemoveAll(removed)
		}
		if err := clearFolder(folder); err != nil {
			return err
		}
		// an encoder in folder is that of the new run where the earlier one has its own aside; else both may use it
		if runfolder.Exists(filepath.Join(aside, runfolder.EncoderDir)) {
			if err := os.RemoveAll(filepath.Join(folder, runfolder.EncoderDir)); err != nil {
				return err
			}
		}
	}

	// the experiment file first
	last := len(replacedNames) - 1
	for _, names := range [][]string{replacedNames[last:], replacedNames[:last]} {
		if err := moveFiles(aside, folder, names); err != nil {
			return err
		}
	}
	return os.Remove(aside)
}

// moveFiles moves the files and folders that exist, in order, to a folder that it creates if there is none.
func moveFiles(from, to string, names []string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		err := os.Rename(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
