package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
)

// A training that goes on from an earlier checkpoint than the last finds the best models of the course that it leaves.
// Each best of a checkpoint's state therefore has a sum that identifies its model.

// checkpointSum returns a sum of the checkpoint in a folder: that of its list of checksums. It is "" if there is none.
func checkpointSum(folder string) (string, error) {
	sum, err := runfolder.CRC32C(filepath.Join(folder, runfolder.ChecksumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return sum, err
}

// copied sets the sums of bests that are copies of the checkpoint in a folder.
func (b *bests) copied(folder string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	sum, err := checkpointSum(folder)
	if err != nil || sum == "" {
		return err
	}
	if b.Sums == nil {
		b.Sums = map[string]string{}
	}
	for _, name := range names {
		b.Sums[name] = sum
	}
	return nil
}

// reset forgets the best of the run or of a task, by the name of its checkpoint. It returns what it was the best of.
func (b *bests) reset(name string) (of string) {
	delete(b.Sums, name)
	if name == runfolder.BestDir {
		b.Best, b.Value, b.Worse = multitask.Evaluation{}, 0, 0
		return "the run"
	}
	task := filepath.Base(name)
	delete(b.TaskBest, task)
	return fmt.Sprintf("task %q", task)
}

// restoreBests makes the checkpoints of all bests those that the state names, but for names, which are copies of the
// last checkpoint: from a kept checkpoint if another training has replaced them. A best of which no checkpoint is left
// is reset, and its folder removed. Bests without a sum, of an earlier version of jenga, are left as they are.
func (c *checkpointer) restoreBests(names []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.bests.Sums)) {
		sum, path := c.bests.Sums[name], filepath.Join(c.folder, name)
		if slices.Contains(names, name) {
			continue
		}
		if got, err := checkpointSum(path); err == nil && got == sum {
			continue
		}
		from, err := c.keptCheckpoint(path+runfolder.OldSuffix, sum)
		if err != nil {
			return err
		}
		if from != "" {
			if err := runfolder.Link(from, path, runfolder.SnapshotFile); err != nil {
				return err
			}
			continue
		}
		c.lost = append(c.lost, fmt.Sprintf("%s: it is not the best model of %s until step %d: a training that "+
			"is abandoned has replaced that, and no kept checkpoint has it; the best is selected anew", path,
			c.bests.reset(name), c.last.Number))
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return c.bests.copied(filepath.Join(c.folder, runfolder.LastDir), names)
}

// keptCheckpoint returns the checkpoint with a sum, of old and those that are kept; "" if none is whole.
func (c *checkpointer) keptCheckpoint(old, sum string) (string, error) {
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	steps, err := keptSteps(folder)
	if err != nil {
		return "", err
	}
	candidates := []string{old}
	for _, step := range steps {
		candidates = append(candidates, runfolder.Whole(keptFolder(folder, step)))
	}
	for _, path := range candidates {
		got, err := checkpointSum(path)
		if err == nil && got == sum && runfolder.CheckChecksums(path) == nil {
			return path, nil
		}
	}
	return "", nil
}
