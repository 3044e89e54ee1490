package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
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
	r.machine.Local = local
	if !given {
		r.warnShards()
	}
	return nil
}

// warnShards warns of heads that compare the examples of a shard, and not those of a batch.
func (r *Run) warnShards() {
	if r.experiment().Training.Shards < 2 {
		return
	}
	for _, task := range r.experiment().Tasks {
		for _, head := range task.Heads {
			if heads.TraitsOf(head.Part.Options).Compares {
				r.Warnings = append(r.Warnings, plugin.Warning(head.Place, "task %q: head %q learns by comparing the "+
					"examples of a batch, and compares only those of one of its %d shards", task.Name, head.Name,
					r.experiment().Training.Shards))
			}
		}
	}
}

// writes reports whether this process writes the run folder.
func (r *Run) writes() bool {
	if r.plan.Ranks == nil {
		return true
	}
	rank, _ := r.plan.Ranks.Rank()
	return rank == 0
}

// checkRanks returns an error that names what differs between the processes of a training, in all of them.
func (r *Run) checkRanks(folder string) error {
	if r.plan.Ranks == nil {
		return nil
	}
	text, err := experimentText(r.experiment(), folder)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	own := []string{host, Version, kernel.Name(), string(text)}
	for _, group := range r.Data.Groups {
		own = append(own, fmt.Sprint(len(group.Examples["train"]), " ", len(group.Examples["dev"])))
	}
	all, err := r.plan.Ranks.AllGather([]byte(strings.Join(own, "\x00")))
	if err != nil {
		return err
	}
	first := strings.Split(string(all[0]), "\x00")
	for rank, of := range all {
		if bytes.Equal(of, all[0]) {
			continue
		}
		other := strings.Split(string(of), "\x00")
		for i, what := range []string{"", "jenga", "the kernels", "the experiment", "the data"} {
			if i > 0 && i < len(other) && i < len(first) && other[i] != first[i] {
				if what == "the experiment" {
					return fmt.Errorf("rank %d on %s has another experiment than rank 0 on %s", rank, other[0],
						first[0])
				}
				return fmt.Errorf("rank %d on %s differs from rank 0 on %s: %s: %s, not %s", rank, other[0], first[0],
					what, other[i], first[i])
			}
		}
	}
	return nil
}

// What a process tells the others: the largest number counts.
const (
	goesOn    = 0
	stops     = 1 // early
	cancelled = 2 // by a signal
	fails     = 3
)

// ErrElsewhere is the error of a process that ends because another has one.
var ErrElsewhere = errors.New("another process of the training has ended with an error")

// Agreed is an error that all processes of a training know of, and end by.
type Agreed struct{ Err error }

func (a Agreed) Error() string { return a.Err.Error() }

// Unwrap returns the error.
func (a Agreed) Unwrap() error { return a.Err }

// agree returns the error that all processes of a training end with, after err in this one: nil where none has one,
// multitask.ErrStop or context.Canceled where that is all that any has.
func (r *Run) agree(ctx context.Context, err error) error {
	if r.plan.Ranks == nil {
		return err
	}
	_, err = r.tell(ctx, err, false)
	return err
}

// tell is agree, and reports whether any process saves a snapshot.
func (r *Run) tell(ctx context.Context, err error, saves bool) (saved bool, _ error) {
	own := goesOn
	switch {
	case errors.Is(err, multitask.ErrStop):
		own = stops
	case err != nil:
		own = fails
	case ctx.Err() != nil:
		own = cancelled
	}
	told := []float64{float64(own), 0}
	if saves {
		told[1] = 1
	}
	if failed := r.plan.Ranks.MaxNumbers(told); failed != nil {
		return false, errors.Join(err, failed)
	}
	saved = told[1] > 0
	switch {
	case own == fails:
		return saved, Agreed{err}
	case told[0] == fails:
		return saved, ErrElsewhere
	case told[0] == cancelled:
		return saved, context.Canceled
	case told[0] == stops:
		return saved, multitask.ErrStop
	}
	return saved, nil
}

// steps runs the steps and evaluations of a training, which all of its processes end after the same event. saves
// reports whether this process saves a snapshot after an event, or with nil at the end; a nil saves: it never does.
func (r *Run) steps(ctx context.Context, training *multitask.Training, record func(event any) error,
	saves func(event any) bool) error {
	if r.plan.Ranks == nil {
		return training.Run(ctx, record)
	}
	var failed error // of recording a step, which the others know after the next one
	before := func(event any) error {
		saved, told := r.tell(ctx, failed, saves != nil && saves(event))
		if saved || errors.Is(told, context.Canceled) {
			if err := training.CollectState(); err != nil {
				return err
			}
		}
		return told
	}
	err := training.Run(context.WithoutCancel(ctx), func(event any) error {
		if _, isWarning := event.(multitask.Warning); isWarning {
			return record(event)
		}
		told := before(event)
		if told != nil && !errors.Is(told, context.Canceled) {
			return told
		}
		failed = record(event)
		if _, isStep := event.(multitask.Step); isStep && told == nil {
			return nil
		}
		return r.agree(ctx, failed)
	})
	if err != nil {
		return err
	}
	return before(nil)
}

// follow trains together with the process that writes the run folder.
func (r *Run) follow(ctx context.Context, folder string, data []multitask.Data) (report.Done, error) {
	training, err := multitask.New(r.Model, data, r.planIn(folder))
	if err != nil {
		return report.Done{}, err
	}
	defer training.Close()
	if r.resumed != nil {
		if err := r.resumed.restoreTraining(training); err != nil {
			return report.Done{}, err
		}
	}
	switch err := r.agree(ctx, nil); {
	case errors.Is(err, multitask.ErrStop):
		return report.Done{}, nil
	case err != nil:
		return report.Done{}, err
	}
	return report.Done{}, r.steps(ctx, training, func(any) error { return nil }, nil)
}
