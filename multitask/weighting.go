package multitask

import (
	"encoding"
	"fmt"
	"math"
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

// FactorReporter is a GradientWeighting whose factors each Step reports.
type FactorReporter interface {
	// Factors returns the factors of the last Combine, by task.
	Factors() map[string]float64
}

// combined holds the factors of a FactorReporter.
type combined struct{ factors map[string]float64 }

// Factors implements FactorReporter.
func (c *combined) Factors() map[string]float64 { return c.factors }

// report sets the factors of a step.
func (c *combined) report(tasks []string, factors []float64) {
	c.factors = map[string]float64{}
	for t, task := range tasks {
		c.factors[task] = factors[t]
	}
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
	return WeightingEnv{Heads: m.headNames(), Params: nn.NewParams(seed).In("weighting")}
}

// headNames returns the names of all heads, group after group.
func (m *Model) headNames() []HeadName {
	var names []HeadName
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				names = append(names, HeadName{task.Name, head.Name})
			}
		}
	}
	return names
}

var weightings = plugin.NewRegistry[WeightingEnv, Weighting]("weighting")

// Weightings lists the registered weightings.
func Weightings() *plugin.Registry[WeightingEnv, Weighting] { return weightings }

// RegisterWeighting registers a weighting as `weighting: {type: name}`.
func RegisterWeighting[O any](name string, defaults O, New func(O, WeightingEnv) (Weighting, error)) {
	plugin.Register(weightings, name, defaults, New)
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

func init() {
	RegisterWeighting("fixed", NoOptions{}, func(NoOptions, WeightingEnv) (Weighting, error) { return Fixed{}, nil })
	weightings.SetDefault("fixed")
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

func init() { RegisterWeighting("rlw", NoOptions{}, NewRLW) }

// RLW weighs the losses at random (random loss weighting, Lin et al. 2022, "Reasonable Effectiveness of Random
// Weighting: A Litmus Test for Multi-Task Learning"): each step draws new factors
//
//	softmax(z)_h    z_h normal, with mean 0 and variance 1
//
// for the losses, which are multiplied by the heads' weights too. A step draws a z for every head of the experiment;
// the z of heads without labelled texts or words in the step are not used.
type RLW struct {
	heads map[HeadName]int // → the number of its z
}

// NewRLW makes the weighting for the heads in env.
func NewRLW(_ NoOptions, env WeightingEnv) (Weighting, error) { return RLW{numbered(env.Heads)}, nil }

// numbered returns the index of each head.
func numbered(heads []HeadName) map[HeadName]int {
	numbers := map[HeadName]int{}
	for i, head := range heads {
		numbers[head] = i
	}
	return numbers
}

// Weigh implements Weighting.
func (w RLW) Weigh(s State, losses []Loss) []float64 {
	z := make([]float64, len(w.heads))
	for i := range z {
		z[i] = s.Rand.NormFloat64()
	}
	return w.factors(z, losses)
}

// factors returns softmax(z) times the weights of the losses' heads.
func (w RLW) factors(z []float64, losses []Loss) []float64 {
	p, factors := softmax(z), make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight * p[w.heads[l.HeadName()]]
	}
	return factors
}

// softmax returns exp(x_i) / Σ_j exp(x_j); nothing of nothing.
func softmax(x []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	largest, sum := slices.Max(x), 0.0
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = math.Exp(v - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
