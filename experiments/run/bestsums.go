package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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

// reset forgets the best of the run or of a task, by the name of its checkpoint, after a step.
func (b *bests) reset(name string, step int) {
	delete(b.Sums, name)
	if name == runfolder.BestDir {
		b.Best, b.Value, b.Worse, b.Since = multitask.Evaluation{}, 0, 0, step
		return
	}
	delete(b.TaskBest, filepath.Base(name))
}

// bestOf returns what a checkpoint is the best of, by its name.
func bestOf(name string) string {
	if name == runfolder.BestDir {
		return "the run"
	}
	return fmt.Sprintf("task %q", filepath.Base(name))
}

// keptCheckpoint returns a checkpoint with a sum, of old, those that are kept, and others; "" if none is whole.
func (c *checkpointer) keptCheckpoint(sum, old string, others []string) (string, error) {
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	steps, err := keptSteps(folder)
	if err != nil {
		return "", err
	}
	candidates := []string{old}
	for _, step := range steps {
		candidates = append(candidates, runfolder.Whole(keptFolder(folder, step)))
	}
	for _, path := range append(candidates, others...) {
		got, err := checkpointSum(path)
		if err == nil && got == sum && runfolder.CheckChecksums(path) == nil {
			return path, nil
		}
	}
	return "", nil
}
