package multitask

import (
	"encoding"
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Weighting makes one loss of many. One that needs more than a step's labelled units implements interfaces below
// besides.
type Weighting interface {
	// Weigh gives a factor for the mean of each loss of a step. Their labelled units are known, their sums are not.
	// Heads without labelled units in this step may be among them.
	Weigh(s State, losses []Loss) []float64
}

// LossWeighting is a Weighting whose factors depend on the losses of the step that they are for. A step of several
// batches then costs another forward pass of each.
type LossWeighting interface {
	// WeighLosses gives the factors in the place of Weigh: the sums of losses are known.
	WeighLosses(s State, losses []Loss) []float64
}

// LearnedWeighting is a Weighting with parameters of its own that learn. They are updated by an AdamW of their own,
// without weight decay, and their gradient is not clipped with the model's.
type LearnedWeighting interface {
	// Params returns the parameters, made under the env's Params, always in the same order.
	Params() []*nn.Param
	// Rate returns their learning rate at its highest: over a run it goes as the model's.
	Rate() float64
	// Differentiate adds to into the derivatives of what the step minimised by the parameters, and returns the terms
	// of it that are the weighting's own.
	Differentiate(losses []Loss, into nn.Gradients) float64
}

// GradientWeighting is a Weighting that combines the gradients that each task's loss has at the parameters that all
// tasks share: those of the encoder, and of a fusion that it describes as shared. Each task's batch costs a backward
// pass of its own.
type GradientWeighting interface {
	// Combine gives the factor of each task's gradient in their sum: dots[t][u] is the dot product of those of tasks t
	// and u. The tasks are those of which the step has labelled units. Parameters that are not shared keep their
	// gradients.
	Combine(s State, tasks []string, dots [][]float64) []float64
}

// LossObserver is a Weighting, or a Sampler, that sees the losses of steps that are done.
type LossObserver interface {
	Observe(s State, losses []Loss)
}

// LossReviewer is a Weighting that sees what an update made of the losses: it costs another forward pass of each batch.
type LossReviewer interface {
	// Review is given the losses of a step's batches before and after its update.
	Review(s State, before, after []Loss)
}

// Stateful is a Weighting or a Sampler that carries state from step to step besides the parameters of a
// LearnedWeighting: a snapshot holds it.
type Stateful interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// WeightingSite is what a weighting is made for.
type WeightingEnv struct {
	Heads  []HeadName
	Params nn.Params // the weighting's corner of a tree that no checkpoint holds
}

// HeadName names a head of a task.
type HeadName struct{ Task, Head string }

// WeightingSite returns the env of a weighting of m's losses.
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

// RegisterWeighting makes a weighting known as `weighting: {type: name}`.
func RegisterWeighting[O any](name string, defaults O, New func(O, WeightingEnv) (Weighting, error)) {
	plugin.Register(weightings, name, defaults, New)
}

func init() {
	RegisterWeighting("fixed", fixedOptions{},
		func(fixedOptions, WeightingEnv) (Weighting, error) { return Fixed{}, nil })
}

// CheckWeighting returns why the plan's weighting cannot work on the model.
func (plan Plan) CheckWeighting(m *Model) error {
	if _, ok := plan.Weighting.(GradientWeighting); !ok || !m.Frozen() {
		return nil
	}
	for _, w := range m.shared() {
		if w.Learns() {
			return nil
		}
	}
	return fmt.Errorf("it combines the tasks' gradients of the parameters that they share, and none of those learns; "+
		"want a model.freeze that leaves some of the encoder to learn, or weighting: %s", weightings.Default())
}

// TaskGradients returns the bytes that gradients by task take, 0 where the plan's weighting does not ask for them.
func (plan Plan) TaskGradients(m *Model) int64 {
	if _, ok := plan.Weighting.(GradientWeighting); !ok {
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

// Fixed gives each head the weight that the experiment names. All losses pull at one encoder, and a clipped step of
// AdamW is as long whatever their sum: a weight is a share of it. Losses that are means over many labels ask for a
// larger one, losses that are large by nature, those of numbers and of rare labels that class_weights lift, for a
// smaller one.
type Fixed struct{}

// Weigh returns the heads' weights.
func (Fixed) Weigh(_ State, losses []Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
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

// update moves the parameters, of which differentiate has given the gradients, at a share of their highest rate.
func (l *learned) update(share float64) {
	if l == nil {
		return
	}
	l.store.SumSquares()
	l.store.Update(1, l.Rate()*share)
}

// differentiate makes the gradients for a step's losses, and returns the weighting's own terms of what is minimised.
func (l *learned) differentiate(losses []Loss) float64 {
	if l == nil {
		return 0
	}
	l.store.Zero()
	return l.Differentiate(losses, l.store.Gradients())
}
