// Package weightings has what combines the losses of all heads, or the gradients of all tasks, into one.
package weightings

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Weighting combines the losses of all heads into one: each field says what it does besides multiplying the mean of
// each loss by its head's weight, which is what the zero Weighting does.
type Weighting struct {
	// Weigh returns a factor for the mean of each loss of a step. Their labelled units are known, their sums are not.
	// Heads without labelled units in this step may be among them. nil: the heads' weights.
	Weigh func(s multitask.State, losses []multitask.Loss) []float64
	// WeighLosses returns the factors instead of Weigh where they depend on the losses of the same step, whose sums are
	// known. A step of several batches then takes another forward pass of each.
	WeighLosses func(s multitask.State, losses []multitask.Loss) []float64
	// Combine combines the tasks' gradients of the parameters that all tasks share: those of the encoder, and those
	// that the fusion describes as shared. Each task takes a backward pass of its own. It returns the factor of each
	// task's gradient in their sum: dots[t][u] is the dot product of those of tasks t and u. The tasks are those that
	// have labelled units in the step. Parameters that are not shared keep their gradients.
	Combine func(s multitask.State, tasks []string, dots [][]float64) []float64
	// ReportsFactors says that each train.Step reports the factors of Combine.
	ReportsFactors bool
	// Learned are parameters of its own; nil: it has none.
	Learned *Learned
	// Observe receives the losses of each finished step.
	Observe func(s multitask.State, losses []multitask.Loss)
	// Review receives the losses of a step's batches before and after its update, which takes another forward pass of
	// each batch.
	Review func(s multitask.State, before, after []multitask.Loss)
	// State is what changes from step to step besides Learned, which a snapshot holds.
	State multitask.Stateful
	// Type is the weighting's in the experiment file. Register sets it; a training goes on from a snapshot of one of
	// the same type only.
	Type string
}

// Learned are the parameters of a weighting. They are updated by an AdamW of their own, without weight decay, and their
// gradient is not clipped with the model's.
type Learned struct {
	Params []*nn.Param // made under the env's Params, always in the same order
	Rate   float64     // their highest learning rate; it has the schedule of the model's
	// Differentiate adds the derivatives of the step's loss by the parameters to into, and returns the weighting's own
	// terms of that loss.
	Differentiate func(losses []multitask.Loss, into nn.Gradients) float64
}

// Factors returns the factor of each loss: by their sums where the weighting needs them, else by their labelled units
// alone.
func (w Weighting) Factors(s multitask.State, losses []multitask.Loss) []float64 {
	switch {
	case w.WeighLosses != nil:
		return w.WeighLosses(s, losses)
	case w.Weigh != nil:
		return w.Weigh(s, losses)
	}
	return fixed{}.weigh(losses)
}

// ComparesTasks reports whether a weighting compares the losses or the gradients of the tasks of a step.
func (w Weighting) ComparesTasks() bool { return w.WeighLosses != nil || w.Combine != nil }

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
	plugin.Register(registry, name, defaults, func(o O, env Env) (Weighting, error) {
		w, err := New(o, env)
		w.Type = name
		return w, err
	})
}

func init() {
	Register("fixed", struct{}{}, func(struct{}, Env) (Weighting, error) { return Weighting{}, nil })
	registry.SetDefault("fixed")
}

// fixed multiplies each loss by its head's weight in the experiment. All losses change one encoder, and the length of a
// clipped step of AdamW does not depend on their sum: only the ratio of weights matters. Losses that are means over
// many labels need a larger weight; large losses, such as those of numbers and of rare labels that class_weights
// raises, need a smaller one.
type fixed struct{}

func (fixed) weigh(losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
}

func init() {
	Register("rlw", struct{}{}, func(_ struct{}, env Env) (Weighting, error) { return Random(env.Heads, normals), nil })
}

// rlw weighs the losses at random (random loss weighting, Lin et al. 2022, "Reasonable Effectiveness of Random
// Weighting: A Litmus Test for Multi-Task Learning"): each step draws new factors
//
//	softmax(z)_h    z_h normal, with mean 0 and variance 1
//
// for the losses, which are multiplied by the heads' weights too. A step draws a z for every head of the experiment;
// the z of heads without labelled texts or words in the step are not used.
type rlw struct {
	heads map[multitask.HeadName]int // → the number of its z
	draw  func(s multitask.State, n int) []float64
}

// Random returns the weighting whose factors are the softmax of the numbers that draw returns in each step, one for
// each of heads.
func Random(heads []multitask.HeadName, draw func(s multitask.State, n int) []float64) Weighting {
	return Weighting{Weigh: rlw{multitask.HeadNumbers(heads), draw}.weigh}
}

func normals(s multitask.State, n int) []float64 {
	z := make([]float64, n)
	for i := range z {
		z[i] = s.Rand.NormFloat64()
	}
	return z
}

func (w rlw) weigh(s multitask.State, losses []multitask.Loss) []float64 {
	p, factors := softmax(w.draw(s, len(w.heads))), make([]float64, len(losses))
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
