// Package weightings has what combines the losses of all heads, or the gradients of all tasks, into one.
package weightings

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Weighting combines the losses of all heads into one. A weighting that needs more than a step's labelled units also
// implements interfaces below.
type Weighting interface {
	// Weigh returns a factor for the mean of each loss of a step. Their labelled units are known, their sums are not.
	// Heads without labelled units in this step may be among them.
	Weigh(s multitask.State, losses []multitask.Loss) []float64
}

// LossWeighting is a Weighting whose factors depend on the losses of the same step. A step of several batches then
// takes another forward pass of each.
type LossWeighting interface {
	// WeighLosses returns the factors instead of Weigh: the sums of losses are known.
	WeighLosses(s multitask.State, losses []multitask.Loss) []float64
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
	Differentiate(losses []multitask.Loss, into nn.Gradients) float64
}

// GradientWeighting is a Weighting that combines the tasks' gradients of the parameters that all tasks share: those
// of the encoder, and those that the fusion describes as shared. Each task takes a backward pass of its own.
type GradientWeighting interface {
	// Combine returns the factor of each task's gradient in their sum: dots[t][u] is the dot product of those of tasks
	// t and u. The tasks are those that have labelled units in the step. Parameters that are not shared keep their
	// gradients.
	Combine(s multitask.State, tasks []string, dots [][]float64) []float64
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

// LossReviewer is a Weighting that receives the losses after an update, which takes another forward pass of each batch.
type LossReviewer interface {
	// Review receives the losses of a step's batches before and after its update.
	Review(s multitask.State, before, after []multitask.Loss)
}

// Env is the environment that a weighting is made in.
type Env struct {
	Heads  []multitask.HeadName
	Params nn.Params // the weighting's subtree of a tree that is in no checkpoint
}

// EnvOf returns the environment of a weighting of m's losses.
func EnvOf(m *multitask.Model, seed uint64) Env {
	return Env{Heads: m.HeadNames(), Params: nn.NewParams(seed).In("weighting")}
}

var registry = plugin.NewRegistry[Env, Weighting]("weighting")

// Registry lists the registered weightings.
func Registry() *plugin.Registry[Env, Weighting] { return registry }

// Register registers a weighting as `weighting: {type: name}`.
func Register[O any](name string, defaults O, New func(O, Env) (Weighting, error)) {
	plugin.Register(registry, name, defaults, New)
}

func init() {
	Register("fixed", struct{}{}, func(struct{}, Env) (Weighting, error) { return Fixed{}, nil })
	registry.SetDefault("fixed")
}

// Fixed multiplies each loss by its head's weight in the experiment. All losses change one encoder, and the length of a
// clipped step of AdamW does not depend on their sum: only the ratio of weights matters. Losses that are means over
// many labels need a larger weight; large losses, such as those of numbers and of rare labels that class_weights
// raises, need a smaller one.
type Fixed struct{}

// Weigh returns the heads' weights.
func (Fixed) Weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
}

func init() { Register("rlw", struct{}{}, NewRLW) }

// RLW weighs the losses at random (random loss weighting, Lin et al. 2022, "Reasonable Effectiveness of Random
// Weighting: A Litmus Test for Multi-Task Learning"): each step draws new factors
//
//	softmax(z)_h    z_h normal, with mean 0 and variance 1
//
// for the losses, which are multiplied by the heads' weights too. A step draws a z for every head of the experiment;
// the z of heads without labelled texts or words in the step are not used.
type RLW struct {
	heads map[multitask.HeadName]int // → the number of its z
}

// NewRLW makes the weighting for the heads in env.
func NewRLW(_ struct{}, env Env) (Weighting, error) {
	return RLW{multitask.HeadNumbers(env.Heads)}, nil
}

// Weigh implements Weighting.
func (w RLW) Weigh(s multitask.State, losses []multitask.Loss) []float64 {
	z := make([]float64, len(w.heads))
	for i := range z {
		z[i] = s.Rand.NormFloat64()
	}
	return w.Factors(z, losses)
}

// Factors returns softmax(z) times the weights of the losses' heads.
func (w RLW) Factors(z []float64, losses []multitask.Loss) []float64 {
	p, factors := Softmax(z), make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight * p[w.heads[l.HeadName()]]
	}
	return factors
}

// Softmax returns exp(x_i) / Σ_j exp(x_j); nothing of nothing.
func Softmax(x []float64) []float64 {
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

// ComparesTasks reports whether a weighting compares the losses or the gradients of the tasks of a step.
func ComparesTasks(w Weighting) bool {
	_, losses := w.(LossWeighting)
	return losses || CombinesGradients(w)
}

// CombinesGradients reports whether a weighting is a GradientWeighting.
func CombinesGradients(w Weighting) bool {
	_, combines := w.(GradientWeighting)
	return combines
}
