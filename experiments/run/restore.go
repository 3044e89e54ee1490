package run

import (
	"fmt"
	"os"
	"path/filepath"
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
		return nil, fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	return log, nil
}

// restore sets a training and its checkpointer to the state of the checkpoint, and removes what came after it. It
// changes nothing in the run folder where it returns an error of the state.
func (s *resumption) restore(c *checkpointer) error {
	// the state
	if err := refused(s.checkpoint, settingDifferences(c.training, s.snapshot), s.allowed); err != nil {
		return err
	}
	if err := c.training.RestoreDespite(s.snapshot); err != nil {
		return fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	s.snapshot = nil // its memory
	c.bests, c.before = s.state.Bests, s.state.Seconds
	c.last = multitask.Step{Number: s.state.Step, Of: s.state.Of, Skipped: s.state.Skipped, Epoch: s.state.Epoch}
	c.saved = saving{bests: c.bests.clone(), step: c.last.Number, due: c.training.Due(), state: true}
	c.stateAt = s.checkpoint

	// the folder
	if err := c.run.writeExperiment(c.folder); err != nil {
		return err
	}
	if err := s.complete(c); err != nil {
		return err
	}
	return c.metrics.cut()
}

// complete ends what a kill may have interrupted after the checkpoint was written, or while the next one was.
func (s *resumption) complete(c *checkpointer) error {
	last := filepath.Join(c.folder, runfolder.LastDir)
	if err := os.RemoveAll(last + runfolder.NewSuffix); err != nil {
		return err
	}
	if s.checkpoint == last+runfolder.OldSuffix {
		if err := os.Rename(s.checkpoint, last); err != nil {
			return err
		}
		s.checkpoint, c.stateAt = last, last
	}
	if s.checkpoint != last {
		return nil // it is complete since long
	}
	if err := os.RemoveAll(last + runfolder.OldSuffix); err != nil {
		return err
	}
	for _, name := range s.state.Links {
		task, isTask := strings.CutPrefix(filepath.ToSlash(name), runfolder.TasksDir+"/")
		_, _, err := c.run.Model.Group(task)
		if name != runfolder.BestDir && (!isTask || err != nil) {
			return fmt.Errorf("%s: snapshot: unexpected copy %q of the checkpoint", s.checkpoint, name)
		}
		if err := c.link(name); err != nil {
			return err
		}
	}
	if err := c.keep(s.state.Step); err != nil {
		return err
	}
	return settle(c.folder)
}
