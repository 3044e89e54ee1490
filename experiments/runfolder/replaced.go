package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// What replaces a run moves it to ReplacedDir in its folder, and removes it when the new run has a best checkpoint and
// its experiment file: a training writes that first, what makes a run of others last. The earlier run's is moved last,
// and is the first to be moved back: while it is in ReplacedDir, the files outside are the new run's.

// trained are the files and folders that a run writes to its folder besides its experiment file.
var trained = []string{
	ExperimentFile + NewSuffix, SplitsFile + NewSuffix, TasksDir, CheckpointsDir,
	BestDir, BestDir + NewSuffix, BestDir + OldSuffix,
	LastDir, LastDir + NewSuffix, LastDir + OldSuffix,
	EncoderDir + NewSuffix, EncoderDir + OldSuffix,
	MetricsFile, MetricsFile + NewSuffix, SplitsFile,
}

var (
	// ownNames are the files and folders that each run has, the experiment file last.
	ownNames = append(slices.Clone(trained), ExperimentFile)
	// replacedNames are those and the encoder of a merged run.
	replacedNames = append([]string{EncoderDir}, ownNames...)
)

// StatesPattern names the temporary files of a frozen encoder's states, as os.CreateTemp takes it. A kill may leave
// some where the system does not delete files that are open.
const StatesPattern = "jenga-states-*"

// HasLockFile reports whether a folder has a lock file: if nobody holds it, a kill has left it.
func HasLockFile(folder string) bool {
	return Exists(filepath.Join(folder, LockFile))
}

// CheckFree returns an error if a training writes to a folder, if it holds a run and force is false, or if it holds
// other files.
func CheckFree(folder string, force bool) error {
	if err := CheckUnlocked(folder); err != nil {
		return err
	}
	return checkFree(folder, force, HasLockFile(folder))
}

// CheckWritable returns an error if no file can be created in a folder, or in the one that it will be made in. It
// creates one and removes it: what permissions, mounts and quotas allow, systems tell in ways of their own.
func CheckWritable(folder string) error {
	at := folder
	for !Exists(at) && filepath.Dir(at) != at {
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, "jenga-written-*")
	var of *fs.PathError
	if errors.As(err, &of) { // without the name of that file
		return fmt.Errorf("%s: no file can be written to %s: %w", folder, at, of.Err)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CheckNew is CheckWritable of a folder for a new run.
func CheckNew(folder string) error {
	if err := CheckWritable(folder); err != nil {
		return fmt.Errorf("run folder: %w; name another one by %w", err, outArgument)
	}
	return nil
}

// CheckFree is CheckFree of the folder that is locked.
func (l *Lock) CheckFree(force bool) error {
	return checkFree(filepath.Dir(l.file.Name()), force, l.killed)
}

// checkFree is CheckFree of a folder that no other process has locked; killed reports whether a kill has left a lock
// file in it.
func checkFree(folder string, force, killed bool) error {
	entries, err := os.ReadDir(folder)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == LockFile || e.Name() == TeachersDir && e.IsDir()
	})
	others := slices.DeleteFunc(slices.Clone(entries), isMade)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (len(entries) == 0 || onlyBegun(entries)):
		return nil
	case err == nil && killed && len(others) == 0:
		if force || !HasModel(folder) {
			return nil
		}
		return fmt.Errorf("%s holds what a command has left of a run that was killed before it had an %s: name "+
			"another folder by %w, or replace it by %w", folder, ExperimentFile, outArgument, forceArgument)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file; name a folder by %w", fileIn(folder), outArgument)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !IsRun(folder):
		return fmt.Errorf("%s holds files, but no run, as %s: name another folder by %w, or remove them", folder,
			append(others, entries...)[0].Name(), outArgument)
	case !force && Exists(filepath.Join(folder, LastDir, SnapshotFile)):
		return fmt.Errorf("%s holds a run whose training did not end: %w %[1]s goes on with it; or name another "+
			"folder by %[3]w, or replace it by %[4]w", folder, ResumeArgument, outArgument, forceArgument)
	case !force && Exists(filepath.Join(folder, LastDir, EndFile)):
		return fmt.Errorf("%s holds a run: %w %[1]s trains it on with more training.num_epochs; or name another "+
			"folder by %[3]w, or replace it by %[4]w", folder, ResumeArgument, outArgument, forceArgument)
	case !force:
		return fmt.Errorf("%s holds a run: name another folder by %w, or replace it by %w", folder, outArgument,
			forceArgument)
	}
	return nil
}

// fileIn returns the part of a path that is a file though it should be a folder.
func fileIn(path string) string {
	for above := path; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return above
		} else if above == filepath.Dir(above) {
			return path
		}
	}
}

// onlyBegun reports whether files are what a training has left that was killed before its folder was a run: an empty
// metrics file and what is written before the experiment file.
func onlyBegun(entries []fs.DirEntry) bool {
	begun := false
	for _, e := range entries {
		switch e.Name() {
		case MetricsFile:
			info, err := e.Info()
			begun = err == nil && info.Size() == 0
			if !begun {
				return false
			}
		case SplitsFile, SplitsFile + NewSuffix, ExperimentFile + NewSuffix:
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
	case ExperimentFile, TasksDir, CheckpointsDir:
		return false
	}
	return slices.Contains(replacedNames, e.Name())
}

// CheckApart rejects a folder for a new run that is, holds or lies in one of the files and folders that the run is
// made of.
func CheckApart(folder string, inputs []string) error {
	for _, input := range inputs {
		if Exists(input) && (isWithin(folder, input) || isWithin(input, folder)) {
			return fmt.Errorf("%s is, holds or lies in %s, which the new run is made of: name another folder by %w",
				folder, input, outArgument)
		}
	}
	return nil
}

// CheckBase rejects a base model, or what else a training reads of a run, called what, that is part of the run in
// folder, and would be deleted with it.
func CheckBase(folder, what, base string) error {
	if base == "" {
		return nil
	}
	if _, err := RealPath(base); err != nil {
		return err
	}
	for _, name := range append([]string{ReplacedDir}, trained...) {
		if isWithin(filepath.Join(folder, name), base) {
			return fmt.Errorf("%s holds a run that %s is part of, %s: name another folder by %w, or use a "+
				"copy of that run", folder, what, base, outArgument)
		}
	}
	return nil
}

// realFolder is RealPath of a folder that need not exist yet.
func realFolder(folder string) (string, error) {
	if whole, err := RealPath(folder); err == nil {
		return whole, nil
	}
	absolute, err := filepath.Abs(folder)
	if err != nil || filepath.Dir(absolute) == absolute {
		return absolute, err
	}
	parent, err := realFolder(filepath.Dir(absolute))
	return filepath.Join(parent, filepath.Base(absolute)), err
}

// Clear deletes the files of a run in folder, except the encoder of a merged one, and nothing else. The
// experiment file, which marks a run, is deleted last.
func Clear(folder string) error {
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

// clearStates deletes the files of states that a killed run left in folder.
func clearStates(folder string) error {
	left, err := fs.Glob(os.DirFS(folder), StatesPattern)
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

// SetAside moves the run in folder aside, the one that Abandon leaves there. A run without a model, or what a kill has
// left of one that had no experiment file yet, is removed. The encoder of a merged run is left where it is base, the
// base model of the new run.
func SetAside(folder, base string) error {
	if err := Abandon(folder); err != nil {
		return err
	}
	names, encoder := replacedNames, filepath.Join(folder, EncoderDir)
	if isWithin(encoder, base) {
		names = ownNames
	}
	if !HasModel(folder) || !Exists(filepath.Join(folder, ExperimentFile)) {
		if len(names) > len(ownNames) {
			if err := os.RemoveAll(encoder); err != nil {
				return err
			}
		}
		return Clear(folder)
	}
	if err := clearStates(folder); err != nil {
		return err
	}
	return moveFiles(folder, filepath.Join(folder, ReplacedDir), names)
}

// isWithin reports whether path, of a file or folder, is folder or lies in it; "" does not.
func isWithin(folder, path string) bool {
	if path == "" {
		return false
	}
	folder, noFolder := realFolder(folder)
	path, noPath := realFolder(path)
	within, err := filepath.Rel(folder, path)
	return errors.Join(noFolder, noPath, err) == nil && filepath.IsLocal(within)
}

// Settle ends the replacement of a run in folder: it removes the earlier run if the new one has a best model, and moves
// it back, in place of what there is of the new one, if that has none at all. With a last model alone the new one was
// interrupted and can be resumed: both are left. It does so, too, where a kill has ended a training or Settle.
func Settle(folder string) error {
	moved := Exists(filepath.Join(folder, ReplacedDir, ExperimentFile)) // as a whole
	if moved && HasModel(folder) && !HasBest(folder) {
		return nil
	}
	return Abandon(folder)
}

// Abandon is Settle for a new run: of one that was interrupted before it had a best model and its experiment file, and
// that would have replaced an earlier one, nothing is left.
func Abandon(folder string) error {
	aside := filepath.Join(folder, ReplacedDir)
	removed := aside + OldSuffix
	if err := os.RemoveAll(removed); err != nil || !Exists(aside) {
		return err
	}
	if Exists(filepath.Join(aside, ExperimentFile)) {
		if HasBest(folder) && Exists(filepath.Join(folder, ExperimentFile)) {
			if err := os.Rename(aside, removed); err != nil {
				return err
			}
			return os.RemoveAll(removed)
		}
		if err := Clear(folder); err != nil {
			return err
		}
		// an encoder in folder is that of the new run where the earlier one has its own aside; else both may use it
		if Exists(filepath.Join(aside, EncoderDir)) {
			if err := os.RemoveAll(filepath.Join(folder, EncoderDir)); err != nil {
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
