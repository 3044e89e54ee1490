package run

import (
	"errors"
	"fmt"
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

// keep copies the last checkpoint, with the state of the training, to checkpoints/step-N, and removes the oldest
// checkpoints beyond save_total_limit. Where the last is the only one that is kept, it has no copy.
func (c *checkpointer) keep(step int) error {
	limit := c.run.experiment().Training.SaveTotalLimit
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	if limit != 1 {
		to := filepath.Join(folder, keptPrefix+strconv.Itoa(step))
		if err := runfolder.Link(filepath.Join(c.folder, runfolder.LastDir), to); err != nil {
			return err
		}
	}
	steps, err := keptSteps(folder)
	if err != nil || limit == 0 {
		return err
	}
	for len(steps) > limit {
		path := filepath.Join(folder, keptPrefix+strconv.Itoa(steps[0]))
		steps = steps[1:]
		// renamed first, so that a kill leaves no part of it under its name
		if err := os.Rename(path, path+runfolder.NewSuffix); err != nil {
			return err
		}
		if err := os.RemoveAll(path + runfolder.NewSuffix); err != nil {
			return err
		}
	}
	return nil
}

// keptSteps returns the steps of the checkpoints in a folder, in ascending order. It removes what a kill has left of
// checkpoints that were being written or removed.
func keptSteps(folder string) ([]int, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, e := range entries {
		number, kept := strings.CutPrefix(e.Name(), keptPrefix)
		path := filepath.Join(folder, e.Name())
		switch whole := strings.TrimSuffix(path, runfolder.OldSuffix); {
		case kept && strings.HasSuffix(path, runfolder.NewSuffix):
			err = os.RemoveAll(path)
		case kept && whole != path && runfolder.Exists(whole):
			err = os.RemoveAll(path)
		case kept && whole != path: // the new one has not taken its place
			err = os.Rename(path, whole)
			number = strings.TrimSuffix(number, runfolder.OldSuffix)
		}
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(number); kept && err == nil && number == strconv.Itoa(n) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps), nil
}

// wholeCheckpoint returns the newest checkpoint of a run folder, but for one, that can be read whole; "" if there is
// none.
func wholeCheckpoint(folder, but string) string {
	steps, err := keptSteps(filepath.Join(folder, runfolder.CheckpointsDir))
	if err != nil {
		return ""
	}
	for _, step := range slices.Backward(steps) {
		path := filepath.Join(folder, runfolder.CheckpointsDir, fmt.Sprint(keptPrefix, step))
		if path == but {
			continue
		}
		if _, err := ReadCheckpoint(path, folder); err != nil {
			continue
		}
		if _, _, err := readSnapshot(path); err == nil {
			return path
		}
	}
	return ""
}
