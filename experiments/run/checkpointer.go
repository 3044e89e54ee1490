package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/nn"
)

// checkpointer saves the checkpoints of a run: the last, the best, and the best of each task. It copies what changes in
// training, and writes the copies while training goes on.
type checkpointer struct {
	run       *Run
	folder    string
	lock      *runfolder.Lock // of the folder
	training  *train.Training
	metrics   *events.Log
	selection report.Selection
	started   time.Time // of the training, without that before it was resumed
	before    float64   // seconds before it was resumed

	bests   resume.Bests
	last    train.Step
	decided *bool              // whether the next step saves; nil: stepped decides
	frozen  train.FrozenParams // at the end
	mended  []string           // warnings of what has become of the bests' checkpoints, where a training is resumed
	old     *oldTasks          // of the base run; nil: it continues none

	// replaces is the text of the experiment file that the next checkpoint replaces; "": none
	replaces string

	copies  nn.Copies
	writing chan error // has the result of writing the last checkpoint; nil: none is written
	begun   saving     // the last that has begun
	saved   saving     // the last that is written
	stateAt string     // its place, if a training can be resumed from the last checkpoint; else ""
}

// saving is how far a training was when a checkpoint was made.
type saving struct {
	bests resume.Bests
	names []string // in the run folder that are copies of it
	step  int
	due   bool // an evaluation
	state bool // with a snapshot
	time  time.Time
}

func (r *Run) newCheckpointer(lock *runfolder.Lock, folder string, training *train.Training, metrics *events.Log,
) *checkpointer {
	now := time.Now()
	return &checkpointer{
		run: r, folder: folder, lock: lock, training: training, metrics: metrics,
		selection: r.experiment().Training.Selection, started: now, begun: saving{time: now},
		old: r.newOldTasks(),
	}
}

// evaluated saves the model as the last, and as the best of the run and of tasks where it is better than before. It
// returns train.ErrStop after early_stopping_patience evaluations without improvement.
func (c *checkpointer) evaluated(e train.Evaluation) error {
	names, err := c.bests.Add(e, c.selection, c.run.experiment().Training.TaskBests)
	if err != nil {
		return err
	}
	if c.old != nil && c.bests.Best.Step == e.Step {
		if c.bests.Old, err = c.old.after(c.bests.Old, e); err != nil {
			return err
		}
	}
	if err := c.save(names, c.savesState()); err != nil {
		return err
	}
	return c.ended()
}

// ended returns train.ErrStop if training ends early, nil if it goes on.
func (c *checkpointer) ended() error {
	patience := c.run.experiment().Training.EarlyStoppingPatience
	if patience > 0 && c.bests.Worse >= patience {
		return train.ErrStop
	}
	return nil
}

func (c *checkpointer) savesState() bool {
	return c.run.experiment().Training.SaveStrategy != config.SaveNever
}

// stepped saves the model after the last step, the one that follows before, where the experiment's save_strategy says
// so, unless an evaluation is due, which does.
func (c *checkpointer) stepped(before train.Step) error {
	if len(c.writing) > 0 {
		if err := c.wait(); err != nil {
			return err
		}
	}
	due := false
	if c.decided != nil {
		due, c.decided = *c.decided, nil
	} else {
		due = !c.training.Due() && c.dueAfter(before, c.last)
	}
	if !due {
		return nil
	}
	return c.save(nil, true)
}

// save saves the model as the last, with the state of the training if state is true, and then copies it to other names
// in the run folder. It returns when all is copied that training changes; wait waits until it is written.
func (c *checkpointer) save(names []string, state bool) error {
	if err := c.wait(); err != nil {
		return err
	}

	// what changes in training
	c.training.UseAverage()
	c.copies.Reuse() // the last checkpoint is written
	saved, err := c.run.saved(c.folder, &c.copies)
	if err != nil {
		return err
	}
	for _, name := range names {
		delete(c.bests.Sums, name) // that of the one before
	}
	begun := saving{bests: c.bests.Clone(), names: names, step: c.last.Number, due: c.training.Due(), state: state,
		time: time.Now()}
	var snapshot *snapshots.Snapshot
	if state {
		if snapshot, err = c.snapshot(names); err != nil {
			return err
		}
	}

	// files
	c.begun = begun
	result := make(chan error, 1)
	c.writing = result
	go func() { result <- c.write(saved, snapshot, names, begun.step) }()
	return nil
}

func (c *checkpointer) snapshot(names []string) (*snapshots.Snapshot, error) {
	experiment, err := resume.Text(c.run.experiment(), c.folder)
	if err != nil {
		return nil, err
	}
	s, err := c.training.Snapshot(&c.copies)
	if err != nil {
		return nil, err
	}
	return s, resume.State{
		Experiment: string(experiment), Replaces: c.replaces,
		Step: c.last.Number, Of: c.last.Of, Epoch: c.last.Epoch, Skipped: c.last.Skipped, Bests: c.bests, Links: names,
		Metrics: c.metrics.At(), Seconds: c.seconds(), Device: c.run.deviceName(),
	}.Attach(s)
}

func (c *checkpointer) seconds() float64 { return c.before + time.Since(c.started).Seconds() }

// write writes a checkpoint as the last, and copies it to other names.
func (c *checkpointer) write(m checkpoint.Model, s *snapshots.Snapshot, names []string, step int) error {
	if err := c.lock.Check(); err != nil {
		return err
	}
	if err := c.metrics.Sync(); err != nil { // the snapshot names a place in it
		return err
	}
	last := filepath.Join(c.folder, runfolder.LastDir)
	err := runfolder.Replace(last, func(fresh string) error {
		// an interruption ends the training, and not its last checkpoint
		if err := m.Write(context.Background(), fresh); err != nil || s == nil {
			return err
		}
		return resume.WriteSnapshot(fresh, s)
	})
	if err != nil {
		return err
	}
	if err := c.replaceExperiment(); err != nil {
		return err
	}
	for _, name := range names {
		if err := c.lock.Check(); err != nil {
			return err
		}
		if err := c.link(name); err != nil {
			return err
		}
	}
	if s != nil {
		if err := c.keep(step); err != nil {
			return err
		}
	}
	return runfolder.Settle(c.folder)
}

func (c *checkpointer) wait() error {
	if c.writing == nil {
		return nil
	}
	err := <-c.writing
	c.writing = nil
	if err != nil {
		return err
	}
	c.saved, c.replaces = c.begun, ""
	c.stateAt = ""
	last := filepath.Join(c.folder, runfolder.LastDir)
	if c.saved.state {
		c.stateAt = last
	}
	// of a checkpoint that is written, after an interruption too
	return c.bests.Copied(context.Background(), last, c.saved.names)
}

// interrupted saves the state of a training that a signal has ended, unless the last checkpoint has it.
func (c *checkpointer) interrupted() error {
	err := c.wait()
	same := c.saved.step == c.last.Number && c.saved.due == c.training.Due() && c.saved.state
	if err != nil || same || c.last.Number == 0 {
		return err
	}
	return errors.Join(c.save(nil, true), c.wait())
}

// finish waits for checkpoints, and saves a model that was never evaluated as the last and the best.
func (c *checkpointer) finish() (err error) {
	if !c.bests.HasBest() {
		if c.old != nil {
			if c.bests.Old, err = c.old.afterAll(c.bests.Old); err != nil {
				return err
			}
		}
		if err := c.save([]string{runfolder.BestDir}, c.savesState()); err != nil {
			return err
		}
	}
	if err := c.wait(); err != nil {
		return err
	}
	return c.replaceExperiment() // of a training that was resumed at its end
}

// replaceExperiment replaces the experiment file, if the run has a checkpoint of another one now.
func (c *checkpointer) replaceExperiment() error {
	if c.replaces == "" {
		return nil
	}
	return c.run.writeExperiment(c.folder)
}

// whole returns an error if the folder, or its best model, is gone at the end: someone has moved or removed it.
func (c *checkpointer) whole() error {
	if err := c.lock.Check(); err != nil {
		return err
	}
	if !runfolder.HasBest(c.folder) {
		return fmt.Errorf("%s: no model: it was removed while the run was trained",
			filepath.Join(c.folder, runfolder.BestDir))
	}
	return nil
}

// end writes the last event, and removes the states of a training that is done.
func (c *checkpointer) end() (done events.Done, err error) {
	if c.frozen, err = c.training.CheckFrozen(); err == nil {
		err = c.whole()
	}
	done = c.done()
	if err != nil {
		return done, err
	}
	if err := resume.WriteEnd(c.folder); err != nil {
		return done, err
	}
	if err := c.metrics.Event(done); err != nil {
		return done, err
	}
	if err := c.metrics.Keep(filepath.Join(c.folder, runfolder.MetricsFile)); err != nil {
		return done, err
	}
	if err := c.metrics.Sync(); err != nil {
		return done, err
	}
	return done, runfolder.RemoveSnapshots(c.folder)
}

// done returns the last event of the run, if this is its end.
func (c *checkpointer) done() events.Done {
	return events.Done{
		Best: c.saved.bests.Best, Metric: c.selection.Metric, Value: c.saved.bests.Value, Since: c.saved.bests.Since,
		Seconds: c.seconds(), Step: c.last.Number, Of: c.last.Of, Skipped: c.last.Skipped, Folder: c.folder,
		Resume: c.stateAt, Frozen: c.frozen, Old: c.saved.bests.Old,
	}
}

func (c *checkpointer) link(name string) error {
	return runfolder.Link(filepath.Join(c.folder, runfolder.LastDir), filepath.Join(c.folder, name),
		runfolder.SnapshotFile, runfolder.EndFile)
}

// saves reports whether a snapshot is saved after an event that has not been recorded, or with nil at the end. It
// decides so.
func (c *checkpointer) saves(event train.Event) bool {
	switch e := event.(type) {
	case nil:
		return c.savesState() && !c.bests.HasBest()
	case train.Step:
		due := !c.training.Due() && c.dueAfter(c.last, e)
		c.decided = &due
		return due
	}
	return c.savesState()
}

// dueAfter reports whether save_strategy saves after a step, the one that follows before.
func (c *checkpointer) dueAfter(before, step train.Step) bool {
	switch t := c.run.experiment().Training; t.SaveStrategy {
	case "epoch":
		return int(step.Epoch) > int(before.Epoch)
	case "steps":
		return step.Number%t.SaveSteps == 0
	case "minutes":
		return time.Since(c.begun.time).Minutes() >= t.SaveMinutes
	}
	return false
}

// keep copies the last checkpoint, with the state of the training, to checkpoints/step-N, and removes the oldest
// checkpoints beyond save_total_limit. Where the last is the only one that is kept, it has no copy.
func (c *checkpointer) keep(step int) error {
	limit := c.run.experiment().Training.SaveTotalLimit
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	if limit != 1 {
		last := filepath.Join(c.folder, runfolder.LastDir)
		if err := runfolder.Link(last, runfolder.StepDir(folder, step)); err != nil {
			return err
		}
	}
	return removeSteps(folder, func(steps []int) []int {
		switch limit {
		case 0:
			return nil
		case 1: // which is the last itself
			return steps
		}
		return steps[:max(0, len(steps)-limit)]
	})
}

// removeSteps removes some of the kept checkpoints, and what a kill has left of others.
func removeSteps(folder string, which func(steps []int) []int) error {
	if err := runfolder.TidySteps(folder); err != nil {
		return err
	}
	steps, err := runfolder.Steps(folder)
	if err != nil {
		return err
	}
	for _, step := range which(steps) {
		if err := runfolder.Remove(runfolder.StepDir(folder, step)); err != nil {
			return err
		}
	}
	return nil
}
