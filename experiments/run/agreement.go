package run

import (
	"context"
	"errors"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
)

// agreement runs a training in several processes, all of which end it after the same event.
type agreement struct {
	ranks    *collective.Group // nil: a single process
	training *multitask.Training
	record   func(event any) error
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

// verdictOf returns what a process says after err.
func verdictOf(ctx context.Context, err error) verdict {
	switch {
	case errors.Is(err, multitask.ErrStop):
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
// multitask.ErrStop or context.Canceled where that is all that any has. saves reports whether this process saves a
// snapshot next. Where any does, or a signal ends the training, the first one then has the state of all.
func (a *agreement) reach(ctx context.Context, err error, saves bool) error {
	if a.ranks == nil {
		return err
	}
	own := verdictOf(ctx, err)
	all, saved, failed := a.exchange(own, saves)
	if failed != nil {
		return errors.Join(err, failed)
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
		return multitask.ErrStop
	}
	return nil
}

// exchange returns the largest verdict of all processes, and whether any saves a snapshot.
func (a *agreement) exchange(own verdict, saves bool) (all verdict, saved bool, err error) {
	numbers := []float64{float64(own), 0}
	if saves {
		numbers[1] = 1
	}
	err = a.ranks.MaxNumbers(numbers)
	return verdict(numbers[0]), numbers[1] > 0, err
}

// run runs the steps and evaluations of the training. saves reports whether this process saves a snapshot after an
// event, or with nil at the end.
func (a *agreement) run(ctx context.Context, saves func(event any) bool) error {
	if a.ranks == nil {
		return a.training.Run(ctx, a.record)
	}
	var failed error // of recording a step, which the others know after the next one
	err := a.training.Run(context.WithoutCancel(ctx), func(event any) error {
		if _, isWarning := event.(multitask.Warning); isWarning {
			return a.record(event)
		}

		// the event is recorded in spite of a signal
		end := a.reach(ctx, failed, saves(event))
		if end != nil && !errors.Is(end, context.Canceled) {
			return end
		}
		failed = a.record(event)

		// an evaluation takes long, and may stop the training
		if _, isStep := event.(multitask.Step); isStep && end == nil {
			return nil
		}
		return a.reach(ctx, failed, false)
	})
	if err != nil {
		return err
	}
	return a.reach(ctx, failed, saves(nil))
}
