package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
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
// it, if it holds a run and force is false, if it holds other files, or if its run has the base model.
func CheckFolder(e *config.Experiment, folder string, force bool) error {
	if err := runfolder.CheckUnlocked(folder); err != nil {
		return err
	}
	if err := checkFiles(folder, force, hasLockFile(folder)); err != nil {
		return err
	}
	if base := e.Model.BaseRun; base != nil {
		if err := checkBase(folder, base.Model); err != nil {
			return err
		}
	}
	return checkBase(folder, e.Model.BaseModel.Name)
}

// hasLockFile reports whether a folder has a lock file: if nobody holds it, a kill has left it.
func hasLockFile(folder string) bool {
	return runfolder.Exists(filepath.Join(folder, runfolder.LockFile))
}

// checkFiles returns an error if a folder holds a run and force is false, or if it holds other files. killed is
// hasLockFile of the folder before the caller locked it.
func checkFiles(folder string, force, killed bool) error {
	entries, err := os.ReadDir(folder)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == runfolder.LockFile })
	others := slices.DeleteFunc(slices.Clone(entries), isMade)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (len(entries) == 0 || onlyBegun(entries)):
		return nil
	case err == nil && killed && len(others) == 0:
		if force || !runfolder.HasModel(folder) {
			return nil
		}
		return fmt.Errorf("%s holds what a command has left of a run that was killed before it had an %s: name "+
			"another folder by --out, or replace it by --force", folder, runfolder.ExperimentFile)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file; name a folder by --out", folder)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !runfolder.IsRun(folder):
		return fmt.Errorf("%s holds files, but no run, as %s: name another folder by --out, or remove them", folder,
			append(others, entries...)[0].Name())
	case !force:
		return fmt.Errorf("%s holds a run: name another folder by --out, or replace it by --force", folder)
	}
	return nil
}

// onlyBegun reports whether files are what a training has left that was killed before its folder was a run: an empty
// metrics file and what is written before the experiment file.
func onlyBegun(entries []fs.DirEntry) bool {
	begun := false
	for _, e := range entries {
		switch e.Name() {
		case runfolder.MetricsFile:
			info, err := e.Info()
			begun = err == nil && info.Size() == 0
			if !begun {
				return false
			}
		case runfolder.SplitsFile, runfolder.SplitsFile + runfolder.NewSuffix,
			runfolder.ExperimentFile + runfolder.NewSuffix:
		default:
			return false
		}
	}
	return begun
}

// isMade reports whether a file is one that a command may have left that was killed before the run that it made of
// others was one: a file of a run, but not the experiment file, which is written last, or what only a training writes.
// The lock file beside it distinguishes it from a file of a user.
func isMade(e fs.DirEntry) bool {
	switch e.Name() {
	case runfolder.ExperimentFile, runfolder.TasksDir, runfolder.CheckpointsDir:
		return false
	}
	return slices.Contains(replacedNames, e.Name())
}

// trained are the files and folders that a run writes to its folder besides its experiment file.
var trained = []string{
	runfolder.ExperimentFile + runfolder.NewSuffix, runfolder.SplitsFile + runfolder.NewSuffix,
	runfolder.TasksDir, runfolder.CheckpointsDir,
	runfolder.BestDir, runfolder.BestDir + runfolder.NewSuffix, runfolder.BestDir + runfolder.OldSuffix,
	runfolder.LastDir, runfolder.LastDir + runfolder.NewSuffix, runfolder.LastDir + runfolder.OldSuffix,
	runfolder.EncoderDir + runfolder.NewSuffix, runfolder.EncoderDir + runfolder.OldSuffix,
	runfolder.MetricsFile, runfolder.MetricsFile + runfolder.NewSuffix, runfolder.SplitsFile,
}

// checkBase rejects a base model that is part of the run in folder, and would be deleted with it.
func checkBase(folder, base string) error {
	if base == "" {
		return nil
	}
	if _, err := runfolder.RealPath(base); err != nil {
		return err
	}
	for _, name := range append([]string{runfolder.ReplacedDir}, trained...) {
		if isWithin(filepath.Join(folder, name), base) {
			return fmt.Errorf("%s holds a run that the base model is part of, %s: name another folder by --out, or "+
				"copy the model out of it", folder, base)
		}
	}
	return nil
}

// checkInputs rejects a folder for a new run that is, holds or lies in one of the files and folders that the run is
// made of.
func checkInputs(folder string, inputs []string) error {
	out, err := realFolder(folder)
	if err != nil {
		return err
	}
	for _, input := range inputs {
		path, err := runfolder.RealPath(input)
		if err != nil {
			continue // it is not there
		}
		for _, pair := range [][2]string{{out, path}, {path, out}} {
			if within, err := filepath.Rel(pair[0], pair[1]); err == nil && filepath.IsLocal(within) {
				return fmt.Errorf("%s is, holds or lies in %s, which the new run is made of: name another folder by "+
					"--out", folder, input)
			}
		}
	}
	return nil
}

// realFolder is runfolder.RealPath of a folder that need not exist yet.
func realFolder(folder string) (string, error) {
	if whole, err := runfolder.RealPath(folder); err == nil {
		return whole, nil
	}
	absolute, err := filepath.Abs(folder)
	if err != nil || filepath.Dir(absolute) == absolute {
		return absolute, err
	}
	parent, err := realFolder(filepath.Dir(absolute))
	return filepath.Join(parent, filepath.Base(absolute)), err
}

// clearFolder deletes the files of a run in folder, except the encoder of a merged one, and nothing else. The
// experiment file, which marks a run, is deleted last.
func clearFolder(folder string) error {
	if err := clearStates(folder); err != nil {
		return err
	}
	for _, name := range ownNames {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

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
