package runfolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// stepPrefix is what the names of the checkpoints in CheckpointsDir begin with, before the number of the step.
const stepPrefix = "step-"

// StepDir returns the folder of the kept checkpoint of a step, in the folder of all.
func StepDir(folder string, step int) string {
	return filepath.Join(folder, stepPrefix+strconv.Itoa(step))
}

// Steps returns the steps of the checkpoints in a folder, in ascending order. That of a step may have the suffix
// OldSuffix after a kill.
func Steps(folder string) ([]int, error) {
	names, err := stepNames(folder)
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, name := range names {
		number := strings.TrimSuffix(strings.TrimPrefix(name, stepPrefix), OldSuffix)
		if n, err := strconv.Atoi(number); err == nil && number == strconv.Itoa(n) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps), nil
}

// stepNames returns the names of the kept checkpoints in a folder, and of what a kill has left beside them.
func stepNames(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), stepPrefix) { // not a link, whose folder must not change
			names = append(names, e.Name())
		}
	}
	return names, err
}

// TidySteps removes what a kill has left of checkpoints that were being written to a folder, or removed from it. The
// run must be locked.
func TidySteps(folder string) error {
	names, err := stepNames(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		switch whole := strings.TrimSuffix(path, OldSuffix); {
		case strings.HasSuffix(path, NewSuffix), whole != path && Exists(whole):
			err = os.RemoveAll(path)
		case whole != path: // the new one has not taken its place
			err = os.Rename(path, whole)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Snapshots returns the files of a run folder's checkpoints, those that are kept too, from which training goes on.
func Snapshots(folder string) ([]string, error) {
	kept := filepath.Join(folder, CheckpointsDir)
	names, err := stepNames(kept)
	files := []string{filepath.Join(folder, LastDir, SnapshotFile)}
	for _, name := range names {
		files = append(files, filepath.Join(kept, name, SnapshotFile))
	}
	return slices.DeleteFunc(files, func(path string) bool { return !Exists(path) }), err
}

// RemoveSnapshots removes those files of a training that is done.
func RemoveSnapshots(folder string) error {
	files, err := Snapshots(folder)
	for _, path := range files {
		if removed := os.Remove(path); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
