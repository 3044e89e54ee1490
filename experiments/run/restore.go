package run

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
)

// openMetrics opens the metrics file of the run, whose folder is locked. It returns an error if another training has
// written to the folder since the checkpoint was read.
func (s *resumption) openMetrics(folder string) (*metricsLog, error) {
	now, err := os.Stat(filepath.Join(s.checkpoint, runfolder.SnapshotFile))
	if err != nil || !os.SameFile(now, s.file) || !now.ModTime().Equal(s.file.ModTime()) {
		return nil, fmt.Errorf("%s: another training has written to it meanwhile; resume again", s.checkpoint)
	}
	log, err := openMetrics(filepath.Join(folder, runfolder.MetricsFile), s.state.Metrics)
	if err != nil {
		s.snapshot = nil // its memory, while others are read
		return nil, withRemedy(fmt.Errorf("%s: %w", s.checkpoint, err), s.folder, s.checkpoint)
	}
	return log, nil
}

// restore sets a training and its checkpointer to the state of the checkpoint, and removes what came after it. It
// changes nothing in the run folder where it returns an error of the state.
func (s *resumption) restore(c *checkpointer) error {
	// the state
	if err := s.restoreTraining(c.training); err != nil {
		return err
	}
	c.bests, c.before = s.state.Bests, s.state.Seconds
	if err := c.bests.judge(c.selection); err != nil {
		return fmt.Errorf("%s: the best evaluation so far: %w", s.checkpoint, err)
	}
	c.last = multitask.Step{
		Number: s.state.Step, Of: c.training.Steps(), Skipped: s.state.Skipped, Epoch: s.state.Epoch,
	}

	// what is to be done in the folder
	if err := s.checkCopies(c); err != nil {
		return err
	}
	if err := c.planBests(s.state.Links); err != nil {
		return err
	}

	// the folder
	if err := c.run.writeSplits(c.folder); err != nil {
		return err
	}
	var err error
	if c.file, err = c.run.replacedExperiment(c.folder); err != nil {
		return err
	}
	if err := s.complete(c); err != nil {
		return err
	}
	c.saved = saving{bests: c.bests.clone(), step: c.last.Number, due: c.training.Due(), state: true}
	return c.metrics.cut()
}

// restoreTraining sets a training to the state of the checkpoint.
func (s *resumption) restoreTraining(t *multitask.Training) error {
	if err := refused(s.checkpoint, settingDifferences(t, s.snapshot), s.allowed); err != nil {
		return err
	}
	if err := t.RestoreDespite(s.snapshot); err != nil {
		return s.explainMisfits(err)
	}
	s.snapshot = nil // its memory
	return nil
}

// checkCopies returns an error if the state names copies of the checkpoint that a run does not have.
func (s *resumption) checkCopies(c *checkpointer) error {
	for _, name := range slices.Concat(s.state.Links, slices.Sorted(maps.Keys(s.state.Bests.Sums))) {
		task, isTask := strings.CutPrefix(filepath.ToSlash(name), runfolder.TasksDir+"/")
		_, _, err := c.run.Model.Group(task)
		if name != runfolder.BestDir && (!isTask || err != nil) {
			return fmt.Errorf("%s: snapshot: unexpected copy %q of the checkpoint", s.checkpoint, name)
		}
	}
	return nil
}

// complete makes the checkpoint the last one, and the folder what it was when the checkpoint was written. A kill may have
// interrupted what follows that, or the writing of the next one. metrics.jsonl still has the lines of a later last
// checkpoint until that is replaced.
func (s *resumption) complete(c *checkpointer) error {
	// the last checkpoint
	last := filepath.Join(c.folder, runfolder.LastDir)
	if s.checkpoint != last {
		if err := runfolder.Link(s.checkpoint, last); err != nil {
			return err
		}
	}
	for _, suffix := range []string{runfolder.NewSuffix, runfolder.OldSuffix} {
		if err := os.RemoveAll(last + suffix); err != nil {
			return err
		}
	}
	s.checkpoint, c.stateAt = last, last

	// its copies
	for _, name := range s.state.Links {
		if err := c.link(name); err != nil {
			return err
		}
	}
	if err := c.restoreBests(s.state.Links); err != nil {
		return err
	}
	if err := c.removeLater(s.state.Step); err != nil {
		return err
	}
	if err := c.keep(s.state.Step); err != nil {
		return err
	}
	return settle(c.folder)
}
