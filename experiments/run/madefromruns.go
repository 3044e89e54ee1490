package run

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// CheckMade returns an error if no run that is made of others can be written to folder: another training writes to it,
// it holds a run and force is false, it holds other files, or it is, holds or lies in one of the inputs.
func CheckMade(folder string, force bool, inputs []string) error {
	if err := checkInputs(folder, inputs); err != nil {
		return err
	}
	if err := runfolder.CheckUnlocked(folder); err != nil {
		return err
	}
	return checkFiles(folder, force, hasLockFile(folder))
}

// writeMade writes a run that is made of others, the inputs, to folder by write, in place of an earlier one if force is
// true, which is left as it was on an error. Of a new run nothing is left then, nor of a folder that there was not.
func writeMade(folder string, force bool, inputs []string, write func() error) (err error) {
	// before a lock file is created or removed
	if err := CheckMade(folder, force, inputs); err != nil {
		return err
	}
	killed := hasLockFile(folder)

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
	if err := checkFiles(folder, force, killed); err != nil { // another may have written a run meanwhile
		return err
	}

	// an earlier run, after a kill too
	if err := abandon(folder); err != nil {
		return err
	}
	if err := setAside(folder, ""); err != nil {
		return errors.Join(err, abandon(folder))
	}

	// the run, and in its place the earlier one where it fails
	if err := write(); err != nil {
		cleared := errors.Join(clearFolder(folder), os.RemoveAll(filepath.Join(folder, runfolder.EncoderDir)))
		if cleared != nil {
			return errors.Join(err, cleared)
		}
		return errors.Join(err, abandon(folder))
	}
	return abandon(folder)
}

// madeMetrics is the metrics file of a run whose training is over before it begins.
var madeMetrics = []byte(`{"event":"done","best":null,"seconds":0,"folder":"."}` + "\n")
