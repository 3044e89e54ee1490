package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// restore sets the checkpointer of a training that has been restored to the state of the checkpoint, and makes the run
// folder what it was then. With an error it returns how far training came, nothing where the checkpoint is refused:
// what refuses it is to be mended first.
func (r *Run) restore(ctx context.Context, c *checkpointer) (events.Done, error) {
	plans, err := r.planRestore(ctx, c)
	switch {
	case errors.Is(err, context.Canceled):
		return c.done(), err
	case err != nil:
		return events.Done{}, err
	}
	err = r.restoreFolder(c, plans)
	return c.done(), err
}

// planRestore sets the checkpointer of a training that has been restored to the state of the checkpoint, and plans what
// is to be done in the run folder. It changes nothing there: its error refuses the checkpoint.
func (r *Run) planRestore(ctx context.Context, c *checkpointer) ([]bestPlan, error) {
	state := r.resumed.State
	c.bests, c.before = state.Bests, state.Seconds
	if err := c.bests.Judge(c.selection); err != nil {
		return nil, fmt.Errorf("%s: the best evaluation so far: %w", r.resumed.Checkpoint, err)
	}
	c.last = train.Step{
		Number: state.Step, Of: c.training.Steps(), Skipped: state.Skipped, Epoch: state.Epoch,
	}
	if err := r.checkCopies(c); err != nil {
		return nil, err
	}
	return c.planBests(ctx, state.Links)
}

// restoreFolder makes the run folder what it was when the checkpoint was written, as planned, and removes what came
// after it.
func (r *Run) restoreFolder(c *checkpointer, plans []bestPlan) (err error) {
	if err := r.writeSplits(c.folder); err != nil {
		return err
	}
	if c.replaces, err = r.replacedExperiment(c.folder); err != nil {
		return err
	}
	if err := r.complete(c, plans); err != nil {
		return err
	}
	c.saved = saving{bests: c.bests.Clone(), step: c.last.Number, due: c.training.Due(), state: true}
	return c.metrics.Cut()
}

// checkCopies returns an error if the state names copies of the checkpoint that a run does not have.
func (r *Run) checkCopies(c *checkpointer) error {
	for _, name := range slices.Concat(r.resumed.State.Links, slices.Sorted(maps.Keys(r.resumed.State.Bests.Sums))) {
		task, isTask := strings.CutPrefix(filepath.ToSlash(name), runfolder.TasksDir+"/")
		_, _, err := r.Model.Group(task)
		if name != runfolder.BestDir && (!isTask || err != nil) {
			return fmt.Errorf("%s: snapshot: unexpected copy %q of the checkpoint", r.resumed.Checkpoint, name)
		}
	}
	return nil
}

// complete makes the checkpoint the last one, and the folder what it was when the checkpoint was written. A kill may
// have interrupted what follows that, or the writing of the next one. metrics.jsonl still has the lines of a later last
// checkpoint until that is replaced.
func (r *Run) complete(c *checkpointer, plans []bestPlan) error {
	// the last checkpoint
	last := filepath.Join(c.folder, runfolder.LastDir)
	if r.resumed.Checkpoint != last {
		if err := runfolder.Link(r.resumed.Checkpoint, last); err != nil {
			return err
		}
	}
	for _, suffix := range []string{runfolder.NewSuffix, runfolder.OldSuffix} {
		if err := os.RemoveAll(last + suffix); err != nil {
			return err
		}
	}
	r.resumed.Checkpoint, c.stateAt = last, last

	// its copies
	for _, name := range r.resumed.State.Links {
		if err := c.link(name); err != nil {
			return err
		}
	}
	if err := c.restoreBests(plans, r.resumed.State.Links); err != nil {
		return err
	}

	// the kept checkpoints after it
	later := func(steps []int) []int {
		return slices.DeleteFunc(steps, func(kept int) bool { return kept <= r.resumed.State.Step })
	}
	if err := removeSteps(filepath.Join(c.folder, runfolder.CheckpointsDir), later); err != nil {
		return err
	}
	if err := c.keep(r.resumed.State.Step); err != nil {
		return err
	}
	return runfolder.Settle(c.folder)
}

// bestPlan is what becomes of the checkpoint of a best where a training goes on.
type bestPlan struct {
	name string
	from string // a copy of it, which takes its place; "": there is none, and the best is selected anew
	text string // a warning; "": what happens is as usual
}

// planBests finds the checkpoints of bests that are not those that the state names: another training has replaced them,
// they are damaged or gone. Those of names become copies of the last checkpoint in any case. It returns an error of
// damaged ones that no other checkpoint has, with which the run would end otherwise. It changes no file.
func (c *checkpointer) planBests(ctx context.Context, names []string) (plans []bestPlan, err error) {
	last := filepath.Join(c.folder, runfolder.LastDir)
	for _, name := range names {
		path := runfolder.Whole(filepath.Join(c.folder, name))
		var damaged *runfolder.Damage // of a copy; a kill may have come before there was one
		if runfolder.Exists(path) && errors.As(runfolder.CheckChecksums(ctx, path), &damaged) {
			plans = append(plans, bestPlan{name, last, restoredFrom(damaged.Reason(), last)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.bests.Sums)) {
		if slices.Contains(names, name) {
			continue
		}
		plan, wrong := c.planBest(ctx, name, names)
		if wrong != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = errors.Join(err, wrong)
		if plan != nil {
			plans = append(plans, *plan)
		}
	}
	return plans, err
}

// restoredFrom warns of a best that is damaged for a reason, in place of which a copy is.
func restoredFrom(reason, copied string) string {
	return fmt.Sprintf("%s: it is restored from %s, which has the same model", reason, copied)
}

// anew says what becomes of a best without a checkpoint.
const anew = "the best is selected anew among the evaluations that follow"

// planBest is planBests for one checkpoint; nil: it stays as it is.
func (c *checkpointer) planBest(ctx context.Context, name string, copies []string) (*bestPlan, error) {
	// as it is
	path, sum := filepath.Join(c.folder, name), c.bests.Sums[name]
	whole := runfolder.Whole(path) // a kill may have left the version before
	got, damage := resume.ChecksumOf(ctx, whole)
	if damage == nil {
		damage = runfolder.CheckChecksums(ctx, whole)
	}
	if damage != nil && ctx.Err() != nil {
		return nil, ctx.Err()
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
	from, err := c.keptCheckpoint(ctx, sum, path+runfolder.OldSuffix, others)
	if err != nil {
		return nil, err
	}
	plan, gone := &bestPlan{name: name, from: from}, !runfolder.Exists(whole)
	var reason string
	var damaged *runfolder.Damage
	switch {
	case gone:
		reason = path + ": no such folder"
	case errors.As(damage, &damaged):
		reason = damaged.Reason() // without the remedy
	case damage != nil:
		reason = damage.Error()
	}
	switch until := fmt.Sprintf("the best model of %s until step %d", resume.BestOf(name), c.last.Number); {
	case from != "" && damage != nil:
		plan.text = restoredFrom(reason, from)
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

// restoreBests makes the checkpoints of bests those that the state names, as planned, but for names, which are copies
// of the last checkpoint.
func (c *checkpointer) restoreBests(plans []bestPlan, names []string) error {
	for _, plan := range plans {
		if plan.text != "" {
			c.mended = append(c.mended, plan.text)
		}
		if slices.Contains(names, plan.name) {
			continue
		}
		path := filepath.Join(c.folder, plan.name)
		if plan.from != "" {
			if err := runfolder.Link(plan.from, path, runfolder.SnapshotFile, runfolder.EndFile); err != nil {
				return err
			}
			continue
		}
		c.bests.Reset(plan.name, c.last.Number)
		if err := runfolder.Remove(path); err != nil {
			return err
		}
	}
	// what has begun in the folder comes to its end
	return c.bests.Copied(context.Background(), filepath.Join(c.folder, runfolder.LastDir), names)
}

// keptCheckpoint returns a checkpoint with a sum, of old, those that are kept, and others; "" if none is whole.
func (c *checkpointer) keptCheckpoint(ctx context.Context, sum, old string, others []string) (string, error) {
	folder := filepath.Join(c.folder, runfolder.CheckpointsDir)
	steps, err := runfolder.Steps(folder)
	if err != nil {
		return "", err
	}
	candidates := []string{old}
	for _, step := range steps {
		candidates = append(candidates, runfolder.Whole(runfolder.StepDir(folder, step)))
	}
	for _, path := range append(candidates, others...) {
		got, err := resume.ChecksumOf(ctx, path)
		if err == nil && got == sum {
			if err = runfolder.CheckChecksums(ctx, path); err == nil {
				return path, nil
			}
		}
		if err != nil && ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", nil
}
