package resume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// Bests are the best evaluations so far, data that JSON can hold.
type Bests struct {
	Evaluations int              `json:"evaluations"` // so far
	Best        train.Evaluation `json:"best"`
	Value       float64          `json:"value"` // of Best
	Worse       int              `json:"worse"` // evaluations since Best
	// Since is the step after which Best is selected, where the checkpoint of an earlier best was lost; else 0.
	Since    int                `json:"since,omitempty"`
	TaskBest map[string]float64 `json:"task_best"`
	// Sums identify the checkpoints that are the best of the run and of tasks, by their names, but for those that are
	// copies of the last one, for which there is none yet.
	Sums map[string]string `json:"sums,omitempty"`

	Old []report.Change `json:"old,omitempty"` // heads of the base run, before training and at Best
}

// Clone returns a copy that Add does not change.
func (b Bests) Clone() Bests {
	b.TaskBest, b.Old, b.Sums = maps.Clone(b.TaskBest), slices.Clone(b.Old), maps.Clone(b.Sums)
	return b
}

// HasBest reports whether there is a best evaluation of the run.
func (b *Bests) HasBest() bool { return len(b.Best.Groups) > 0 }

// Judge computes the value of the best evaluation again: the metric that selects may have changed since.
func (b *Bests) Judge(by report.Selection) (err error) {
	if b.HasBest() {
		b.Value, err = by.Value(b.Best.Groups)
	}
	return err
}

// Add adds an evaluation. It returns the checkpoints that its model replaces: the best of the run and, if tasks is
// true, of tasks.
func (b *Bests) Add(e train.Evaluation, by report.Selection, tasks bool) (names []string, err error) {
	value, err := by.Value(e.Groups)
	if err != nil {
		return nil, err
	}

	// best of the run
	if !b.HasBest() || by.Better(value, b.Value) {
		b.Best, b.Value, b.Worse = e, value, 0
		names = append(names, runfolder.BestDir)
	} else {
		b.Worse++
	}
	b.Evaluations++
	if !tasks {
		return names, nil
	}

	// best of each task
	if b.TaskBest == nil {
		b.TaskBest = map[string]float64{}
	}
	for _, g := range e.Groups {
		for _, task := range g.Tasks {
			figure, evaluated := task.Main()
			if best, have := b.TaskBest[task.Task]; !evaluated || have && figure <= best {
				continue
			}
			b.TaskBest[task.Task] = figure
			names = append(names, filepath.Join(runfolder.TasksDir, task.Task))
		}
	}
	return names, nil
}

// A training that goes on from an earlier checkpoint than the last finds the best models of the course that it leaves.
// Each best of a checkpoint's state therefore has a sum that identifies its model.

// ChecksumOf returns a sum of the checkpoint in a folder: that of its list of checksums. It is "" if there is none.
func ChecksumOf(ctx context.Context, folder string) (string, error) {
	sum, err := runfolder.CRC32C(ctx, filepath.Join(folder, runfolder.ChecksumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return sum, err
}

// Copied sets the sums of bests that are copies of the checkpoint in a folder.
func (b *Bests) Copied(ctx context.Context, folder string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	sum, err := ChecksumOf(ctx, folder)
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

// Reset forgets the best of the run or of a task, by the name of its checkpoint, after a step.
func (b *Bests) Reset(name string, step int) {
	delete(b.Sums, name)
	if name == runfolder.BestDir {
		b.Best, b.Value, b.Worse, b.Since = train.Evaluation{}, 0, 0, step
		return
	}
	delete(b.TaskBest, filepath.Base(name))
}

// BestOf returns what a checkpoint is the best of, by its name.
func BestOf(name string) string {
	if name == runfolder.BestDir {
		return "the run"
	}
	return fmt.Sprintf("task %q", filepath.Base(name))
}
