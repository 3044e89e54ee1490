package multitask

import (
	"encoding"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Weighting combines the losses of all heads into one. A weighting that needs more than a step's labelled units also
// implements interfaces below.
type Weighting interface {
	// Weigh returns a factor for the mean of each loss of a step. Their labelled units are known, their sums are not.
	// Heads without labelled units in this step may be among them.
	Weigh(s State, losses []Loss) []float64
}

// LossWeighting is a Weighting whose factors depend on the losses of the same step. A step of several batches then
// takes another forward pass of each.
type LossWeighting interface {
	// WeighLosses returns the factors instead of Weigh: the sums of losses are known.
	WeighLosses(s State, losses []Loss) []float64
}

// LearnedWeighting is a Weighting with parameters of its own that learn. They are updated by an AdamW of their own,
// without weight decay, and their gradient is not clipped with the model's.
type LearnedWeighting interface {
	// Params returns the parameters, made under the env's Params, always in the same order.
	Params() []*nn.Param
	// Rate returns their highest learning rate; it has the schedule of the model's.
	Rate() float64
	// Differentiate adds the derivatives of the step's loss by the parameters to into, and returns the weighting's own
	// terms of that loss.
	Differentiate(losses []Loss, into nn.Gradients) float64
}

// GradientWeighting is a Weighting that combines the tasks' gradients of the parameters that all tasks share: those
// of the encoder, and those that the fusion describes as shared. Each task takes a backward pass of its own.
type GradientWeighting interface {
	// Combine returns the factor of each task's gradient in their sum: dots[t][u] is the dot product of those of tasks
	// t and u. The tasks are those that have labelled units in the step. Parameters that are not shared keep their
	// gradients.
	Combine(s State, tasks []string, dots [][]float64) []float64
}

// LossObserver is a Weighting or a Sampler that receives the losses of finished steps.
type LossObserver interface {
	Observe(s State, losses []Loss)
}

// LossReviewer is a Weighting that receives the losses after an update, which takes another forward pass of each batch.
type LossReviewer interface {
	// Review receives the losses of a step's batches before and after its update.
	Review(s State, before, after []Loss)
}

// Stateful is a Weighting or a Sampler that has state from step to step besides the parameters of a LearnedWeighting. A
// snapshot holds it.
type Stateful interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// WeightingEnv is the environment that a weighting is made in.
type WeightingEnv struct {
	Heads  []HeadName
	Params nn.Params // the weighting's subtree of a tree that is in no checkpoint
}

// HeadName names a head of a task.
type HeadName struct{ Task, Head string }

// WeightingEnv returns the environment of a weighting of m's losses.
func (m *Model) WeightingEnv(seed uint64) WeightingEnv {
	env := WeightingEnv{Params: nn.NewParams(seed).In("weighting")}
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				env.Heads = append(env.Heads, HeadName{task.Name, head.Name})
			}
		}
	}
	return env
}

var weightings = plugin.NewRegistry[WeightingEnv, Weighting]("weighting")

// Weightings lists the registered weightings.
func Weightings() *plugin.Registry[WeightingEnv, Weighting] { return weightings }

// RegisterWeighting registers a weighting as `weighting: {type: name}`.
func RegisterWeighting[O any](name string, defaults O, New func(O, WeightingEnv) (Weighting, error)) {
	plugin.Register(weightings, name, defaults, New)
}

func init() {
	RegisterWeighting("fixed", fixedOptions{},
		func(fixedOptions, WeightingEnv) (Weighting, error) { return Fixed{}, nil })
}

// combinesGradients reports whether the plan's weighting is a GradientWeighting.
func (plan Plan) combinesGradients() bool {
	_, combines := plan.Weighting.(GradientWeighting)
	return combines
}

// CheckWeighting returns an error if the plan's weighting cannot be used with the model.
func (plan Plan) CheckWeighting(m *Model) error {
	if !plan.combinesGradients() || !m.Frozen() || slices.ContainsFunc(m.shared(), (*nn.Param).Learns) {
		return nil
	}
	return fmt.Errorf("it combines the tasks' gradients of the parameters that they share, and none of those learns; "+
		"want a model.freeze that leaves some of the encoder to learn, or weighting: %s", weightings.Default())
}

// TaskGradients returns the bytes that gradients by task take, 0 where the plan's weighting does not use them.
func (plan Plan) TaskGradients(m *Model) int64 {
	if !plan.combinesGradients() {
		return 0
	}
	bytes := int64(0)
	for _, w := range m.shared() {
		if w.Learns() {
			bytes += 4 * int64(len(w.Data))
		}
	}
	return int64(len(m.tasks())) * bytes
}

// Fixed multiplies each loss by its head's weight in the experiment. All losses change one encoder, and the length of a
// clipped step of AdamW does not depend on their sum: only the ratio of weights matters. Losses that are means over
// many labels need a larger weight; large losses, such as those of numbers and of rare labels that class_weights
// raises, need a smaller one.
type Fixed struct{}

// Weigh returns the heads' weights.
func (Fixed) Weigh(_ State, losses []Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
}

// weighting is a plan's Weighting and what else it implements; nil: it does not.
type weighting struct {
	Weighting
	byLosses    LossWeighting
	byGradients GradientWeighting
	learned     *learned
	observer    LossObserver
	reviewer    LossReviewer
}

func newWeighting(of Weighting) *weighting {
	w := &weighting{Weighting: of}
	w.byLosses, _ = of.(LossWeighting)
	w.byGradients, _ = of.(GradientWeighting)
	w.observer, _ = of.(LossObserver)
	w.reviewer, _ = of.(LossReviewer)
	if l, ok := of.(LearnedWeighting); ok {
		w.learned = newLearned(l)
	}
	return w
}

// factors returns the factor of each loss: by their sums for a LossWeighting, else by their labelled units alone.
func (w *weighting) factors(s State, losses []Loss) []float64 {
	var factors []float64
	if w.byLosses != nil {
		factors = w.byLosses.WeighLosses(s, losses)
	} else {
		factors = w.Weigh(s, losses)
	}
	w.count(len(factors), len(losses), "losses")
	return factors
}

// count panics if a weighting returned another number of factors than it was given things to weigh.
func (w *weighting) count(have, want int, of string) {
	if have != want {
		panic(fmt.Sprintf("multitask: weighting %T returned %d factors of %d %s", w.Weighting, have, want, of))
	}
}

// learned is the parameters of a LearnedWeighting.
type learned struct {
	LearnedWeighting
	store *nn.HostStore
}

func newLearned(w LearnedWeighting) *learned {
	params := w.Params()
	for _, p := range params {
		p.Decay = false
	}
	return &learned{w, nn.NewHostStore(params, nn.NewAdamW(0))}
}

// update updates the parameters by the gradients from differentiate, at a fraction of their highest rate.
func (l *learned) update(fraction float64) error {
	if l == nil {
		return nil
	}
	l.store.SumSquares()
	return l.store.Update(1, l.Rate()*fraction)
}

// differentiate computes the gradients for a step's losses, and returns the weighting's own terms of the loss.
func (l *learned) differentiate(losses []Loss) float64 {
	if l == nil {
		return 0
	}
	l.store.Zero()
	return l.Differentiate(losses, l.store.Gradients())
}
