package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
)

// Event is what a training reports: a Step, an Evaluation or a Warning; who runs it may have others.
type Event interface {
	// Event returns the name of the event in lines of JSON.
	Event() string
}

// Event returns "skipped" for a step without an update.
func (s Step) Event() string {
	if s.Bad != nil {
		return "skipped"
	}
	return "step"
}

// Event returns "eval".
func (Evaluation) Event() string { return "eval" }

// Event returns "warning".
func (Warning) Event() string { return "warning" }

// Complete makes all remaining steps and evaluations. It reports each Step, Evaluation and Warning to observe, which
// may read the model and end training by an error: ErrStop ends it without an error. A cancelled context ends it too.
func (t *Training) Complete(ctx context.Context, observe func(Event) error) error {
	for !t.Done() {
		var event Event
		var err error
		if t.Due() {
			event, err = t.Evaluate(ctx)
		} else {
			event, err = t.Step(ctx) // next batches, forward, backward, reduce, clip, update
		}
		if err != nil {
			return err
		}
		if err := t.report(observe, event); err != nil {
			return ended(err)
		}
	}
	if err := t.Finish(ctx); err != nil {
		return err
	}
	return ended(t.report(observe))
}

func ended(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// report passes warnings to observe, and then events.
func (t *Training) report(observe func(Event) error, events ...Event) error {
	for _, warning := range t.Warnings() {
		if err := observe(warning); err != nil {
			return err
		}
	}
	for _, event := range events {
		if err := observe(event); err != nil {
			return err
		}
	}
	return nil
}

// Evaluation is the metrics of the model on dev.
type Evaluation struct {
	Step   int
	Epoch  float64
	Groups []multitask.GroupMetrics
	Fusion map[string][]float32 // figures of the fusion by task, nil where it has none
	// Weighted is the weighted mean of tasks' main metrics by which the caller selects the best model; nil
	// where it has no weights, and when Complete reports the evaluation.
	Weighted *float64 `json:"-"`
}

// ErrStop is what observe returns to end training early.
var ErrStop = errors.New("stop")

// Done reports whether only Finish remains to be called.
func (t *Training) Done() bool { return t.state.Step == t.length.Steps && !t.Due() }

// Steps returns the number of steps that the training has.
func (t *Training) Steps() int { return t.length.Steps }

// Due reports whether an evaluation comes next.
func (t *Training) Due() bool {
	return t.data != nil && t.evaluated != t.state.Step && t.plan.due(t.state.Step, t.used, t.length)
}

// Step updates the model once, by the next batches.
func (t *Training) Step(ctx context.Context) (Step, error) {
	t.needsData("Step")
	if err := ctx.Err(); err != nil {
		return Step{}, err
	}
	t.unfreezing.Apply(float64(t.used) / float64(t.length.PerEpoch))
	batches, err := t.next()
	if err != nil {
		return Step{}, err
	}
	return t.Update(batches)
}

// needsData panics if the caller chooses the batches.
func (t *Training) needsData(method string) {
	if t.data == nil {
		panic("train: " + method + " of a training without data; call Update")
	}
}

// Update updates the model once, by at least one batch that the caller chooses. Where several processes train, all call
// it with the same batches: each runs its part of them.
func (t *Training) Update(batches []Batch) (Step, error) {
	switch {
	case t.state.Step == t.length.Steps:
		panic(fmt.Sprintf("train: step %d of %d", t.state.Step+1, t.length.Steps))
	case len(batches) == 0:
		panic("train: an update without batches")
	}
	t.host.UseAverage(false)
	report, err := t.compute(batches)
	if err != nil {
		return report, fmt.Errorf("step %d: %w", t.state.Step+1, err)
	}
	t.state.Step++
	t.state.Last = batches[len(batches)-1].Group
	report.Epoch, report.Sampling = t.epoch(), t.probabilities
	return report, nil
}

// next returns the batches of the next update, those of all processes.
func (t *Training) next() ([]Batch, error) {
	var batches []Batch
	n := t.length
	clear(t.numbers.now)
	for round := range min(n.Rounds, divideUp(n.Batches-t.used, n.Groups)) {
		if epoch := t.used / n.PerEpoch; t.used == 0 || epoch > t.state.Epoch {
			t.state.Epoch = epoch
			t.state.Left = append(t.state.Left[:0], t.state.Batches...)
		}
		if of := t.plan.Sampler.Probabilities; of != nil && round == 0 && len(t.iterators) > 1 {
			t.probabilities = of(t.state)
		}
		t.state.Rand = rand.New(t.sampling)
		chosen := t.plan.Sampler.Next(t.state)
		if len(chosen) != n.Groups {
			panic(fmt.Sprintf("train: sampler %q named %d groups; want %d", t.plan.Sampler.Type, len(chosen), n.Groups))
		}
		for _, g := range chosen {
			examples, err := t.iterators[g].next()
			if err != nil {
				return nil, fmt.Errorf("step %d: %w", t.state.Step+1, err)
			}
			t.numbers.read(examples, t.iterators[g].last())
			t.state.Left[g]--
			t.state.Last = g
			batches = append(batches, Batch{g, examples})
			t.used++
		}
	}
	return batches, nil
}

func (t *Training) epoch() float64 {
	if t.length.PerEpoch == 0 {
		return 0
	}
	epoch := float64(t.used) / float64(t.length.PerEpoch)
	if t.plan.MaxSteps == 0 {
		epoch = min(epoch, float64(t.plan.Epochs)) // the last batches of several groups may be a few more
	}
	return epoch
}

// UseAverage makes the model's parameters hold their running means, if the plan has an Average, until the next update.
// A Snapshot has their own values too.
func (t *Training) UseAverage() { t.host.UseAverage(true) }

// Evaluate fits the heads that have a Fitter in Describe, tunes those with a Tuner, and evaluates all groups on dev.
// With the plan's Average the model has the running means of its parameters then, and until the next update.
func (t *Training) Evaluate(ctx context.Context) (Evaluation, error) {
	t.needsData("Evaluate")
	t.UseAverage()
	step := t.state.Step
	if err := t.fit(ctx); err != nil {
		return Evaluation{}, fmt.Errorf("fitting heads after step %d: %w", step, err)
	}
	var groups []multitask.GroupMetrics
	for g := range t.model.Groups {
		metrics, err := t.model.TuneAndEvaluate(ctx, &t.model.Groups[g], t.data[g].Dev, t.plan.BatchSize,
			t.plan.BatchTokens)
		if err != nil {
			return Evaluation{}, fmt.Errorf("evaluation after step %d: %w", step, err)
		}
		groups = append(groups, metrics)
	}
	t.evaluated = step
	evaluation := Evaluation{Step: step, Epoch: t.epoch(), Groups: groups, Fusion: t.model.FusionFigures()}
	if observe := t.plan.Sampler.ObserveEvaluation; observe != nil {
		observe(groups)
	}
	return evaluation, nil
}

// EvaluateGroup evaluates a group of tasks of the model on examples, as Model.Evaluate does. Where several processes
// train, all call it.
func (t *Training) EvaluateGroup(ctx context.Context, g *multitask.Group,
	examples []*corpus.Example) (multitask.GroupMetrics, error) {
	together := multitask.Cached{Model: t.model.Model, Ranks: t.plan.Ranks}
	return together.Evaluate(ctx, g, examples, t.plan.BatchSize, t.plan.BatchTokens, nil)
}

func (t *Training) fit(ctx context.Context) error {
	for g := range t.model.Groups {
		err := t.model.FitHeads(ctx, &t.model.Groups[g], t.data[g].Train, t.plan.BatchSize, t.plan.BatchTokens)
		if err != nil {
			return err
		}
	}
	return nil
}

// Finish fits the heads that have a Fitter in Describe if no evaluation has done so. With the plan's Average the model
// has the running means of its parameters.
func (t *Training) Finish(ctx context.Context) error {
	t.UseAverage()
	if !t.plan.NeverEvaluate || t.data == nil {
		return nil
	}
	return t.fit(ctx)
}

// Close frees what is outside Go's memory: the file of a frozen encoder's states, messages of other ranks, and stores
// that are io.Closers. The results of the training are elsewhere, so that a failure has no consequence.
func (t *Training) Close() {
	t.model.Cache.Close()
	t.exchange.close()
	for _, store := range t.stores {
		if c, ok := store.(io.Closer); ok {
			c.Close()
		}
	}
}

// Warnings returns the warnings since the last call. Complete reports them itself.
func (t *Training) Warnings() []Warning { return t.warnings(t.length.Steps) }

// FinalWarnings returns the warnings since the last call of a training that does not go on: those too that would need
// more steps, by the steps that there were.
func (t *Training) FinalWarnings() []Warning { return t.warnings(t.state.Step) }

// warnings returns the warnings since the last call of a training of so many steps.
func (t *Training) warnings(steps int) []Warning {
	all := t.pending
	t.pending = nil
	if err := t.model.Cache.Failure(); err != nil { // the file of a frozen encoder's states was given up
		all = append(all, Warning{err.Error()})
	}
	return append(all, t.balance.warnings(t.state.Step, steps)...)
}

// FrozenParams is the proof that a training has left the encoder's frozen parameters as they were.
type FrozenParams struct {
	Values        int    // their number
	Before, After string // CRC-32C of their values before and after training, in hexadecimal
}

// CheckFrozen returns the checksums of the encoder's frozen parameters before training and now, or an error if they
// differ.
func (t *Training) CheckFrozen() (FrozenParams, error) {
	proof := FrozenParams{Before: t.frozenSum}
	for _, w := range frozenParams(t.model.Model) {
		proof.Values += len(w.Data)
	}
	var err error
	if proof.After, err = sumFrozen(t.model.Model); err != nil {
		return proof, err
	}
	if proof.After != proof.Before {
		return proof, fmt.Errorf("the encoder's frozen parameters have changed in training: their CRC-32C was %s, it "+
			"is %s", proof.Before, proof.After)
	}
	return proof, nil
}
