package run

import (
	"context"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
)

// checkpointer saves the checkpoints of a run: the last, the best, and the best of each task.
type checkpointer struct {
	run       *Run
	folder    string
	selection report.Selection
	bests     bests
	saved     bests // those whose checkpoints are written
	last      multitask.Step
	frozen    multitask.FrozenParams // at the end
	old       *oldTasks              // of the base run; nil: it continues none
}

// bests are the best evaluations so far, data that JSON can hold.
type bests struct {
	Evaluations int                  `json:"evaluations"` // so far
	Best        multitask.Evaluation `json:"best"`
	Value       float64              `json:"value"` // of Best
	Worse       int                  `json:"worse"` // evaluations since Best
	TaskBest    map[string]float64   `json:"task_best"`
	Old         []report.OldHead     `json:"old,omitempty"` // heads of the base run, before training and at Best
}

// newCheckpointer returns the checkpointer of a run in folder.
func (r *Run) newCheckpointer(folder string) *checkpointer {
	return &checkpointer{run: r, folder: folder, selection: selectionOf(r.experiment().Training)}
}

// evaluated saves the model as the last, and as the best of the run and of tasks where it is better than before. It
// returns multitask.ErrStop after early_stopping_patience evaluations without improvement.
func (c *checkpointer) evaluated(e multitask.Evaluation) error {
	names, err := c.bests.add(e, c.selection)
	if err != nil {
		return err
	}
	if c.old != nil && c.bests.Best.Step == e.Step {
		if c.bests.Old, err = c.old.after(c.bests.Old, e); err != nil {
			return err
		}
	}
	if err := c.saveLast(); err != nil {
		return err
	}
	for _, name := range names {
		if err := c.link(name); err != nil {
			return err
		}
	}
	c.saved = c.bests
	if err := settle(c.folder); err != nil {
		return err
	}
	if patience := c.run.experiment().Training.EarlyStoppingPatience; patience > 0 && c.bests.Worse >= patience {
		return multitask.ErrStop
	}
	return nil
}

// add adds an evaluation. It returns the checkpoints that its model replaces: the best of the run and of tasks.
func (b *bests) add(e multitask.Evaluation, by report.Selection) (names []string, err error) {
	value, err := by.Value(e.Groups)
	if err != nil {
		return nil, err
	}

	// best of the run
	if b.Evaluations == 0 || by.Better(value, b.Value) {
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

// finish saves a model that was never evaluated, as the last and the best.
func (c *checkpointer) finish() error {
	if c.bests.Evaluations > 0 {
		return nil
	}
	if err := c.saveLast(); err != nil {
		return err
	}
	if c.old != nil {
		var err error
		if c.saved.Old, err = c.old.after(c.bests.Old, multitask.Evaluation{}); err != nil {
			return err
		}
	}
	return c.link(runfolder.BestDir)
}

// measureOld evaluates the tasks of the base run before training, unless that is done, and at each best evaluation.
func (c *checkpointer) measureOld(ctx context.Context) (err error) {
	c.old = &oldTasks{c.run, ctx}
	if c.bests.Old == nil {
		c.bests.Old, err = c.old.before()
	}
	return err
}

// done returns the last event of the run, if this is its end.
func (c *checkpointer) done() report.Done {
	return report.Done{
		Best: c.saved.Best, Metric: c.selection.Metric, Value: c.saved.Value,
		Step: c.last.Number, Of: c.last.Of, Skipped: c.last.Skipped, Folder: c.folder, Frozen: c.frozen,
		Old: c.saved.Old,
	}
}

func (c *checkpointer) saveLast() error {
	return c.run.save(filepath.Join(c.folder, runfolder.LastDir))
}

// link copies the last checkpoint to another name in the run folder.
func (c *checkpointer) link(name string) error {
	return runfolder.Link(filepath.Join(c.folder, runfolder.LastDir), filepath.Join(c.folder, name))
}

// selectionOf returns the metric that selects the best model.
func selectionOf(t config.Training) report.Selection {
	return report.Selection{Metric: t.MetricForBestModel, Higher: t.GreaterIsBetter}
}
