package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// keptPrefix is what the names of kept checkpoints begin with, before the number of the step.
const keptPrefix = "step-"

// keptFolder returns the folder of the kept checkpoint of a step, in the folder of all.
func keptFolder(folder string, step int) string {
	return filepath.Join(folder, keptPrefix+strconv.Itoa(step))
}

// keep copies the last checkpoint, with the state of the training, to checkpoints/step-N, and removes the oldest
// checkpoints beyond save_total_limit. Where the last is the only one that is kept, it has no copy.
func (c *checkpointer) keep(step int) error {
	limit := c.run.experiment().Training.SaveTotalLimit
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	if limit != 1 {
		last := filepath.Join(c.folder, runfolder.LastDir)
		if err := runfolder.Link(last, keptFolder(folder, step)); err != nil {
			return err
		}
	}
	if err := tidyKept(folder); err != nil || limit == 0 {
		return err
	}
	steps, err := keptSteps(folder)
	if err != nil {
		return err
	}
	if limit == 1 { // which is the last itself
		limit = 0
	}
	for len(steps) > limit {
		if err := removeKept(folder, steps[0]); err != nil {
			return err
		}
		steps = steps[1:]
	}
	return nil
}

// removeLater removes the kept checkpoints after a step, from which training goes on.
func (c *checkpointer) removeLater(step int) error {
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	if err := tidyKept(folder); err != nil {
		return err
	}
	steps, err := keptSteps(folder)
	if err != nil {
		return err
	}
	for _, kept := range steps {
		if kept <= step {
			continue
		}
		if err := removeKept(folder, kept); err != nil {
			return err
		}
	}
	return nil
}

// removeKept removes the checkpoint of a step from a folder.
func removeKept(folder string, step int) error {
	path := keptFolder(folder, step)
	// renamed first, so that a kill leaves no part of it under its name
	if err := os.Rename(path, path+runfolder.NewSuffix); err != nil {
		return err
	}
	return os.RemoveAll(path + runfolder.NewSuffix)
}

// keptSteps returns the steps of the checkpoints in a folder, in ascending order. That of a step may have the suffix
// runfolder.OldSuffix after a kill.
func keptSteps(folder string) ([]int, error) {
	names, err := keptNames(folder)
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, name := range names {
		number := strings.TrimSuffix(strings.TrimPrefix(name, keptPrefix), runfolder.OldSuffix)
		if n, err := strconv.Atoi(number); err == nil && number == strconv.Itoa(n) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps), nil
}

// stateFiles returns the files of a run folder's checkpoints, those that are kept too, from which training goes on.
func stateFiles(folder string) ([]string, error) {
	kept := filepath.Join(folder, runfolder.CheckpointsDir)
	names, err := keptNames(kept)
	files := []string{filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)}
	for _, name := range names {
		files = append(files, filepath.Join(kept, name, runfolder.SnapshotFile))
	}
	return slices.DeleteFunc(files, func(path string) bool { return !runfolder.Exists(path) }), err
}

// removeStates removes those files of a training that is done.
func removeStates(folder string) error {
	files, err := stateFiles(folder)
	for _, path := range files {
		if removed := os.Remove(path); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// keptNames returns the names of the kept checkpoints in a folder, and of what a kill has left beside them.
func keptNames(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), keptPrefix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// tidyKept removes what a kill has left of checkpoints that were being written to a folder, or removed from it. The run
// must be locked.
func tidyKept(folder string) error {
	names, err := keptNames(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		switch whole := strings.TrimSuffix(path, runfolder.OldSuffix); {
		case strings.HasSuffix(path, runfolder.NewSuffix), whole != path && runfolder.Exists(whole):
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

// wholeCheckpoint returns the newest checkpoint of a run folder, but for one, that can be read whole, and that
// metrics.jsonl fits; "" if there is none.
func wholeCheckpoint(folder, but string) string {
	all := filepath.Join(folder, runfolder.CheckpointsDir)
	steps, err := keptSteps(all)
	if err != nil {
		return ""
	}
	paths := []string{runfolder.Whole(filepath.Join(folder, runfolder.LastDir))}
	for _, step := range slices.Backward(steps) {
		paths = append(paths, runfolder.Whole(keptFolder(all, step)))
	}
	for _, path := range paths {
		if path == but {
			continue
		}
		if _, err := ReadCheckpoint(path, folder); err != nil {
			continue
		}
		_, state, err := readSnapshot(path)
		if err != nil {
			continue
		}
		if log, err := openMetrics(filepath.Join(folder, runfolder.MetricsFile), state.Metrics); err == nil {
			log.file.Close()
			return path
		}
	}
	return ""
}
