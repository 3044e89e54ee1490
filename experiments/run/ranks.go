package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// UseRanks makes Train train together with other processes, all of which call it, in as many shards as the experiment
// has, or as there are processes; local of them share the machine. It is called before Train.
func (r *Run) UseRanks(ranks *collective.Group, local int) error {
	_, n := ranks.Rank()
	shards, given := &r.experiment().Training.Shards, r.experiment().Training.Shards > 0
	switch {
	case *shards == 0 && r.resumed != nil:
		*shards = 1 // as it began
	case *shards == 0:
		*shards = n
	}
	if *shards%n != 0 {
		return &plugin.Mistake{Place: r.experiment().Place("training.shards"), Err: fmt.Errorf("training: %s cannot "+
			"be divided among %d processes; want as many processes as shards, or a half, a quarter, …; a training "+
			"goes on with the shards that it began with", plugin.Count(*shards, "shard"), n)}
	}
	r.plan.Ranks, r.plan.Shards = ranks, *shards
	if r.teachers != nil {
		r.teachers.Ranks = ranks
	}
	r.machine.Local = local
	if given { // checked with the experiment
		return nil
	}
	if err := r.experiment().CheckPairs(); err != nil {
		return &plugin.Mistake{Place: r.experiment().Place("training.batch_size"), Err: err}
	}
	r.warnShards()
	return nil
}

// warnShards warns of shards without examples, and of heads that compare the examples of a shard, and not those of a
// batch.
func (r *Run) warnShards() {
	if r.experiment().Training.Shards < 2 {
		return
	}
	if t := r.experiment().Training; t.Shards > t.BatchSize {
		place := r.experiment().Place("training.batch_size")
		r.Warnings = append(r.Warnings, plugin.Warn(place, "training: batch_size is %d, and each batch is cut into "+
			"%d shards, some of which are empty: a process that has none with examples computes nothing", t.BatchSize,
			t.Shards))
	}
	for _, task := range r.experiment().Tasks {
		for _, head := range task.Heads {
			if heads.TraitsOf(head.Part.Options).Compares {
				r.Warnings = append(r.Warnings, plugin.Warn(head.Place, "task %q: head %q learns by comparing the "+
					"examples of a batch, and compares only those of one of its %d shards", task.Name, head.Name,
					r.experiment().Training.Shards))
			}
		}
	}
}

func (r *Run) writes() bool {
	if r.plan.Ranks == nil {
		return true
	}
	rank, _ := r.plan.Ranks.Rank()
	return rank == 0
}

// reading returns the context of what a training sums before its first step. Of several processes none leaves alone,
// which the others would wait for: they agree on the end at the first step.
func (r *Run) reading(ctx context.Context) context.Context {
	if r.plan.Ranks == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// checkRanks returns an error that names what differs between the processes of a training, in all of them. It is called
// before any of them writes to the folder.
func (r *Run) checkRanks(folder string) error {
	if r.plan.Ranks == nil {
		return nil
	}
	text, err := resume.Text(r.experiment(), folder)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	hosts, err := collective.Gather(r.plan.Ranks, host)
	if err != nil {
		return err
	}
	for rank, host := range hosts {
		r.rankNames = append(r.rankNames, fmt.Sprintf("rank %d on %s", rank, host))
	}
	rank, differs, err := train.CompareRanks(r.plan.Ranks, []snapshots.Setting{
		{Key: "jenga", Value: checkpoint.Build()}, {Key: "the kernels", Value: kernel.Name()},
		{Key: "the experiment", Value: string(text)},
	})
	if differs != nil && differs.Key == "the experiment" { // a text of many lines
		return fmt.Errorf("%s has another experiment than %s", r.rankNames[rank], r.rankNames[0])
	}
	return r.rankDiffers(rank, differs, err)
}

// rankDiffers returns the error of a process that differs from the first one, nil if it does not.
func (r *Run) rankDiffers(rank int, d *snapshots.Difference, err error) error {
	if err != nil || d == nil {
		return err
	}
	return fmt.Errorf("%s differs from %s: %s: %s, not %s", r.rankNames[rank], r.rankNames[0], d.Key,
		cmp.Or(d.Now, "none"), cmp.Or(d.Was, "none"))
}

// checkTrainings returns an error that names what differs between the trainings of all processes, in their data or
// initial weights, in all of them. It is called before the first step.
func (r *Run) checkTrainings(t *train.Training) error { return r.rankDiffers(t.CompareRanks()) }

// trainUnsaved trains together with the process that writes the run folder.
func (r *Run) trainUnsaved(ctx context.Context, folder string, data []multitask.Data) (events.Done, error) {
	if err := r.teach(ctx, folder, nil, func(train.Event) error { return nil }); err != nil {
		return events.Done{}, err
	}
	training, err := train.New(r.Model, data, r.planIn(folder))
	if err != nil {
		return events.Done{}, err
	}
	defer training.Close()
	if r.resumed != nil {
		if err := r.resumed.Restore(training); err != nil {
			return events.Done{}, err
		}
	}
	if err := r.checkTrainings(training); err != nil {
		return events.Done{}, err
	}

	old := r.newOldTasks()
	a := &agreement{ranks: r.plan.Ranks, training: training, record: func(event train.Event) error {
		if _, ok := event.(train.Evaluation); ok {
			return old.join(ctx, false)
		}
		return nil
	}}
	err = a.run(ctx, old.join(ctx, true), func(train.Event) bool { return false })
	if errors.Is(err, train.ErrStop) {
		err = nil
	}
	return events.Done{}, err
}

// agreement runs a training in several processes, all of which end it after the same event.
type agreement struct {
	ranks    *collective.Group
	training *train.Training
	record   func(event train.Event) error
	warnings []string // of this process: those that it has recorded, or, where it is not the first, has to pass on
}

// verdict is what a process says of the training, and what all agree on: the largest of what they say.
type verdict int

const (
	goesOn    verdict = iota
	stops             // early
	cancelled         // by a signal
	fails
)

// ErrElsewhere is the error of a process that ends because another has one.
var ErrElsewhere = errors.New("another process of the training has ended with an error")

// Agreed is an error that all processes of a training know of, and end by.
type Agreed struct{ Err error }

func (a Agreed) Error() string { return a.Err.Error() }

// Unwrap returns the error.
func (a Agreed) Unwrap() error { return a.Err }

// midway is an error within what all processes do together: others may wait there, so that there is no agreement after
// it.
type midway struct{ error }

// Unwrap returns the error.
func (m midway) Unwrap() error { return m.error }

func verdictOf(ctx context.Context, err error) verdict {
	switch {
	case errors.Is(err, train.ErrStop):
		return stops
	case errors.Is(err, context.Canceled):
		return cancelled
	case err != nil:
		return fails
	case ctx.Err() != nil:
		return cancelled
	}
	return goesOn
}

// reach returns the error that all processes of the training end with, after err in this one: nil where none has one,
// train.ErrStop or context.Canceled where that is all that any has. saves reports whether this process saves a
// snapshot next. Where any does, or a signal ends the training, the first one then has the state of all.
func (a *agreement) reach(ctx context.Context, err error, saves bool) error {
	if errors.As(err, new(midway)) {
		return err
	}
	own := verdictOf(ctx, err)
	all, saved, warns, failed := a.share(own, saves)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if warns {
		if err := a.passOnWarnings(); err != nil {
			return err
		}
	}
	if saved || all == cancelled {
		if err := a.training.CollectState(); err != nil {
			return err
		}
	}
	switch {
	case own == fails:
		return Agreed{err}
	case all == fails:
		return ErrElsewhere
	case all == cancelled:
		return context.Canceled
	case all == stops:
		return train.ErrStop
	}
	return nil
}

// share returns the largest verdict of all processes, whether any saves a snapshot, and whether any but the first has
// warnings.
func (a *agreement) share(own verdict, saves bool) (all verdict, saved, warns bool, err error) {
	rank, _ := a.ranks.Rank()
	numbers := []float64{float64(own), 0, 0}
	if saves {
		numbers[1] = 1
	}
	if rank > 0 && len(a.warnings) > 0 {
		numbers[2] = 1
	}
	err = a.ranks.MaxNumbers(numbers)
	return verdict(numbers[0]), numbers[1] > 0, numbers[2] > 0, err
}

// passOnWarnings makes the first process record the warnings of the others that it does not have itself.
func (a *agreement) passOnWarnings() error {
	all, err := collective.Gather(a.ranks, a.warnings)
	if err != nil {
		return err
	}
	if rank, _ := a.ranks.Rank(); rank > 0 {
		a.warnings = nil
		return nil
	}
	for rank, warnings := range all[1:] {
		for _, w := range warnings {
			if slices.Contains(a.warnings, w) {
				continue
			}
			if err := a.record(train.Warning{Text: fmt.Sprintf("rank %d: %s", rank+1, w)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs the steps and evaluations of the training, unless a process has failed: failed is the error of this one.
// saves reports whether this process saves a snapshot after an event, or with nil at the end.
func (a *agreement) run(ctx context.Context, failed error, saves func(event train.Event) bool) error {
	if err := a.reach(ctx, failed, false); err != nil {
		return err
	}
	failed = nil // of recording a step, which the others know after the next one
	err := a.training.Complete(context.WithoutCancel(ctx), func(event train.Event) error {
		if warning, isWarning := event.(train.Warning); isWarning {
			a.warnings = append(a.warnings, warning.Text)
			return a.record(event)
		}

		// the event is recorded in spite of a signal
		end := a.reach(ctx, failed, saves(event))
		if end != nil && !errors.Is(end, context.Canceled) {
			return end
		}
		failed = a.record(event)

		// an evaluation takes long, and may stop the training
		if _, isStep := event.(train.Step); isStep && end == nil {
			return nil
		}
		return a.reach(ctx, failed, false)
	})
	if err != nil {
		return err
	}
	return a.reach(ctx, failed, saves(nil))
}
