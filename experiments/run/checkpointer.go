package run

import (
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

	evaluations int
	best        multitask.Evaluation
	value       float64 // of the best
	worse       int     // evaluations since
	taskBest    map[string]float64
}

// evaluated saves the model as the last, and as the best of the run and of tasks where it is better than before. It
// returns multitask.ErrStop after early_stopping_patience evaluations without improvement.
func (c *checkpointer) evaluated(e multitask.Evaluation) error {
	value, err := c.selection.Value(e.Groups)
	if err != nil {
		return err
	}
	if err := c.saveLast(); err != nil {
		return err
	}
	if c.evaluations == 0 || c.selection.Better(value, c.value) {
		c.best, c.value, c.worse = e, value, 0
		if err := c.link(runfolder.BestDir); err != nil {
			return err
		}
	} else {
		c.worse++
	}
	c.evaluations++
	for _, g := range e.Groups {
		for _, task := range g.Tasks {
			figure, evaluated := report.TaskMetric(task)
			if best, have := c.taskBest[task.Task]; !evaluated || have && figure <= best {
				continue
			}
			c.taskBest[task.Task] = figure
			if err := c.link(filepath.Join(runfolder.TasksDir, task.Task)); err != nil {
				return err
			}
		}
	}
	if patience := c.run.experiment().Training.EarlyStoppingPatience; patience > 0 && c.worse >= patience {
		return multitask.ErrStop
	}
	return nil
}

// finish saves a model that was never evaluated, as the last and the best.
func (c *checkpointer) finish() error {
	if c.evaluations > 0 {
		return nil
	}
	if err := c.saveLast(); err != nil {
		return err
	}
	return c.link(runfolder.BestDir)
}

// done returns the last event of the run.
func (c *checkpointer) done() report.Done {
	return report.Done{Best: c.best, Metric: c.selection.Metric, Value: c.value, Folder: c.folder}
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
	if t.MetricForBestModel == "" {
		return report.Selection{Metric: report.Overall, Higher: true}
	}
	return report.Selection{Metric: t.MetricForBestModel, Higher: t.GreaterIsBetter}
}
