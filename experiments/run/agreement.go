package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
)

// agreement runs a training in several processes, all of which end it after the same event.
type agreement struct {
	ranks    *collective.Group // nil: a single process
	training *multitask.Training
	record   func(event any) error
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
	if a.ranks == nil || errors.As(err, new(midway)) {
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
		return multitask.ErrStop
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
	text, err := json.Marshal(a.warnings)
	if err != nil {
		return err
	}
	all, err := a.ranks.Gather(text)
	if err != nil {
		return err
	}
	if all == nil { // in the others
		a.warnings = nil
		return nil
	}
	for rank, text := range all[1:] {
		var warnings []string
		if err := json.Unmarshal(text, &warnings); err != nil {
			return fmt.Errorf("the warnings of rank %d: %w", rank+1, err)
		}
		for _, w := range warnings {
			if slices.Contains(a.warnings, w) {
				continue
			}
			if err := a.record(multitask.Warning{Text: fmt.Sprintf("rank %d: %s", rank+1, w)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs the steps and evaluations of the training. saves reports whether this process saves a snapshot after an
// event, or with nil at the end.
func (a *agreement) run(ctx context.Context, saves func(event any) bool) error {
	if a.ranks == nil {
		return a.training.Run(ctx, a.record)
	}
	var failed error // of recording a step, which the others know after the next one
	err := a.training.Run(context.WithoutCancel(ctx), func(event any) error {
		if warning, isWarning := event.(multitask.Warning); isWarning {
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
