package run

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask/train"
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
	c.last = train.Step{
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
func (s *resumption) restoreTraining(t *train.Training) error {
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

// bestPlan is what becomes of the checkpoint of a best where a training goes on.
type bestPlan struct {
	name string
	from string // a copy of it, which takes its place; "": there is none, and the best is selected anew
	text string // a warning; "": what happens is as usual
}

// planBests finds the checkpoints of bests that are not those that the state names, but for names, which become copies
// of the last checkpoint: another training has replaced them, they are damaged or gone. It returns an error of damaged
// ones that no other checkpoint has, with which the run would end otherwise. It changes no file. Bests without a sum,
// of an earlier version of jenga, are left as they are.
func (c *checkpointer) planBests(names []string) error {
	c.plans = nil
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.bests.Sums)) {
		if slices.Contains(names, name) {
			continue
		}
		plan, err := c.planBest(name, names)
		if err != nil {
			errs = append(errs, err)
		} else if plan != nil {
			c.plans = append(c.plans, *plan)
		}
	}
	return errors.Join(errs...)
}

// anew says what becomes of a best without a checkpoint.
const anew = "the best is selected anew among the evaluations that follow"

// planBest is planBests for one checkpoint; nil: it stays as it is.
func (c *checkpointer) planBest(name string, copies []string) (*bestPlan, error) {
	// as it is
	path, sum := filepath.Join(c.folder, name), c.bests.Sums[name]
	whole := runfolder.Whole(path) // a kill may have left the version before
	got, damage := checkpointSum(whole)
	if damage == nil {
		damage = runfolder.CheckChecksums(whole)
	}
	if damage == nil && got == sum && whole == path {
		return nil, nil
	}

	// a copy
	var others []string // the model may be the best in several ways
	for _, other := range slices.Sorted(maps.Keys(c.bests.Sums)) {
		if other != name && !slices.Contains(copies, other) {
			others = append(others, filepath.Join(c.folder, other))
		}
	}
	from, err := c.keptCheckpoint(sum, path+runfolder.OldSuffix, others)
	if err != nil {
		return nil, err
	}
	plan, gone := &bestPlan{name: name, from: from}, !runfolder.Exists(whole)
	reason := reasonOfDamage(damage)
	if gone {
		reason = path + ": no such folder"
	}
	switch until := fmt.Sprintf("the best model of %s until step %d", bestOf(name), c.last.Number); {
	case from != "" && damage != nil:
		plan.text = fmt.Sprintf("%s: it is restored from %s, which has the same model", reason, from)
	case from != "": // it was replaced, by a training from which an earlier checkpoint is gone on from
	case gone:
		plan.text = fmt.Sprintf("%s: %s is gone, and no kept checkpoint has it; %s", reason, until, anew)
	case damage != nil:
		return nil, fmt.Errorf("%s, and no kept checkpoint has the same model, %s; restore the file from a copy, or "+
			"remove %s: %s", reason, until, path, anew)
	default:
		plan.text = fmt.Sprintf("%s: it is not %s: a training that is abandoned has replaced that, and no kept "+
			"checkpoint has it; %s", path, until, anew)
	}
	return plan, nil
}

// reasonOfDamage returns the text of an error of a checkpoint, without the remedy of a damage.
func reasonOfDamage(err error) string {
	var damage *runfolder.Damage
	switch {
	case err == nil:
		return ""
	case errors.As(err, &damage):
		return damage.Reason()
	}
	return err.Error()
}

// restoreBests makes the checkpoints of bests those that the state names, as planned, but for names, which are copies
// of the last checkpoint.
func (c *checkpointer) restoreBests(names []string) error {
	for _, plan := range c.plans {
		if plan.text != "" {
			c.mended = append(c.mended, plan.text)
		}
		path := filepath.Join(c.folder, plan.name)
		if plan.from != "" {
			if err := runfolder.Link(plan.from, path, runfolder.SnapshotFile); err != nil {
				return err
			}
			continue
		}
		c.bests.reset(plan.name, c.last.Number)
		if err := removeWhole(path); err != nil {
			return err
		}
	}
	return c.bests.copied(filepath.Join(c.folder, runfolder.LastDir), names)
}

// removeWhole removes a checkpoint; a kill leaves no part of it under its name.
func removeWhole(path string) error {
	aside := path + runfolder.NewSuffix
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errors.Join(os.RemoveAll(aside), os.RemoveAll(path+runfolder.OldSuffix))
}
