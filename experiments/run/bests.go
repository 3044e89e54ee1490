package run

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
)

// bests are the best evaluations so far, data that JSON can hold.
type bests struct {
	Evaluations int                  `json:"evaluations"` // so far
	Best        multitask.Evaluation `json:"best"`
	Value       float64              `json:"value"` // of Best
	Worse       int                  `json:"worse"` // evaluations since Best
	// Since is the step after which Best is selected, where the checkpoint of an earlier best was lost; else 0.
	Since    int                `json:"since,omitempty"`
	TaskBest map[string]float64 `json:"task_best"`
	// Sums identify the checkpoints that are the best of the run and of tasks, by their names, but for those that are
	// copies of the last one, for which there is none yet.
	Sums map[string]string `json:"sums,omitempty"`

	Old []report.OldHead `json:"old,omitempty"` // heads of the base run, before training and at Best
}

// clone returns a copy that add does not change.
func (b bests) clone() bests {
	b.TaskBest, b.Old, b.Sums = maps.Clone(b.TaskBest), slices.Clone(b.Old), maps.Clone(b.Sums)
	return b
}

// hasBest reports whether there is a best evaluation of the run.
func (b *bests) hasBest() bool { return len(b.Best.Groups) > 0 }

// judge computes the value of the best evaluation again: the metric that selects may have changed since.
func (b *bests) judge(by report.Selection) (err error) {
	if b.hasBest() {
		b.Value, err = by.Value(b.Best.Groups)
	}
	return err
}

// add adds an evaluation. It returns the checkpoints that its model replaces: the best of the run and of tasks.
func (b *bests) add(e multitask.Evaluation, by report.Selection) (names []string, err error) {
	value, err := by.Value(e.Groups)
	if err != nil {
		return nil, err
	}

	// best of the run
	if !b.hasBest() || by.Better(value, b.Value) {
		b.Best, b.Value, b.Worse = e, value, 0
		names = append(names, runfolder.BestDir)
	} else {
		b.Worse++
	}
	b.Evaluations++

	// best of each task
	if b.TaskBest == nil {
		b.TaskBest = map[string]float64{}
	}
	for _, g := range e.Groups {
		for _, task := range g.Tasks {
			figure, evaluated := report.TaskMetric(task)
			if best, have := b.TaskBest[task.Task]; !evaluated || have && figure <= best {
				continue
			}
			b.TaskBest[task.Task] = figure
			names = append(names, filepath.Join(runfolder.TasksDir, task.Task))
		}
	}
	return names, nil
}
