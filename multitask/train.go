package multitask

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Step is one update of the parameters.
type Step struct {
	Number, Of   int     // from 1
	Epoch        float64 // epochs done, fractions counted
	Loss         float64 // that was minimised: the sum over heads of factor times mean over labelled units
	Losses       []Loss
	TaskFactors  map[string]float64 // of the tasks' gradients; nil: the weighting is not a FactorReporter
	Sampling     []Probability      // when the first group was drawn; nil: one group, or no ProbabilitySampler
	Rate         float64
	GradientNorm float64 // before clipping
	Tokens       int
	Time         time.Duration
	Exchange     *Exchange // with other ranks; nil: there are none
	Bad          *BadStep  // why the step has no update; nil: it has one
	Skipped      int       // steps so far without an update
}

// Exchange is what a step of a training in several ranks sends, and how long it takes this rank: what of Active is not
// in Waited is hidden behind the backward pass.
type Exchange struct {
	Sent   int64         // bytes
	Active time.Duration // in which messages were under way
	Waited time.Duration // in which the step did nothing but wait for messages, and for the sums of what they brought
}

// TokensPerSecond is the step's speed, 0 where its time is too short to measure.
func (s Step) TokensPerSecond() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(s.Tokens) / s.Time.Seconds()
}

// Evaluation is the metrics of the model on dev.
type Evaluation struct {
	Step   int
	Epoch  float64
	Groups []GroupMetrics
	Fusion map[string][]float32 // figures of the fusion by task, nil where it has none
	// Weighted is the weighted mean of tasks' main metrics by which the caller of Train selects the best model; nil
	// where it has no weights, and when Train reports the evaluation.
	Weighted *float64 `json:"-"`
}

// ErrStop is what observe returns to end training early.
var ErrStop = errors.New("stop")

// Train fits the model to the data, data[g] for group g. It reports each Step, Evaluation and Warning to observe, which
// may read the model and end training by an error: ErrStop ends it without an error. A cancelled context ends it too.
func Train(ctx context.Context, m *Model, data []Data, plan Plan, observe func(event any) error) error {
	t, err := New(m, data, plan)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Run(ctx, observe)
}

// Run runs all remaining steps and evaluations, as Train does.
func (t *Training) Run(ctx context.Context, observe func(event any) error) error {
	for !t.Done() {
		var event any
		var err error
		if t.Due() {
			event, err = t.Evaluate(ctx)
		} else {
			event, err = t.Step(ctx) // next batches, forward, backward, reduce, clip, update
		}
		if err != nil {
			return err
		}
		if err := t.report(event, observe); err != nil {
			return ended(err)
		}
	}
	if err := t.Finish(ctx); err != nil {
		return err
	}
	return ended(t.warn(observe))
}

// ended returns the error that ended training, nil for ErrStop.
func ended(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// report passes warnings to observe, and then an event.
func (t *Training) report(event any, observe func(event any) error) error {
	if err := t.warn(observe); err != nil {
		return err
	}
	return observe(event)
}

// Warnings returns the warnings since the last call. Run reports them itself.
func (t *Training) Warnings() []Warning { return t.warnings(t.length.Steps) }

// FinalWarnings returns the warnings since the last call of a training that does not go on: those too that would need
// more steps, by the steps that there were.
func (t *Training) FinalWarnings() []Warning { return t.warnings(t.state.Step) }

// warnings returns the warnings since the last call of a training of so many steps.
func (t *Training) warnings(steps int) []Warning {
	all := slices.Concat(t.pending, t.model.cache.warnings(), t.balance.warnings(t.state.Step, steps))
	t.pending = nil
	return all
}

// warn passes warnings to observe.
func (t *Training) warn(observe func(event any) error) error {
	for _, warning := range t.Warnings() {
		if err := observe(warning); err != nil {
			return err
		}
	}
	return nil
}
