// Package updates has what a training makes of gradients: optimizers and schedules by name, the rates of layers and
// when they begin to learn, and the guard against losses that no update may follow.
package updates

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Optimizer makes the optimizers of trainings. Those of one type and with the same options give the same bytes.
type Optimizer struct {
	// New returns an optimizer without state. Matrices decay by weightDecay, in the way of the optimizer.
	New func(weightDecay float64) *nn.Optimizer
	// StateSize returns how many numbers it keeps of a parameter that learns.
	StateSize func(w *nn.Param) int
	// ComputedRate returns the learning rate of a step, counted from 1. nil: it is the plan's.
	ComputedRate func(step int) float64
	Part
}

// Part is what a snapshot compares of an optimizer or a schedule. The functions that register one set it.
type Part struct {
	Type    string         // in the experiment file
	Options []plugin.Value // by their keys
}

// String returns the type and the options as an experiment file has them.
func (p Part) String() string {
	if len(p.Options) == 0 {
		return p.Type
	}
	var all []string
	for _, o := range p.Options {
		all = append(all, o.Key+": "+o.Text)
	}
	return fmt.Sprintf("%s {%s}", p.Type, strings.Join(all, ", "))
}

// Equal reports whether two parts are the same.
func (p Part) Equal(other Part) bool {
	return p.Type == other.Type && slices.Equal(p.Options, other.Options)
}

func partOf(name string, options any) Part { return Part{name, plugin.SectionOf(options).Values()} }

// ComputesRate reports whether the optimizer of an experiment computes the learning rate: the plan's has no effect.
func ComputesRate(choice plugin.Choice[struct{}, Optimizer]) bool {
	if choice.Options == nil {
		return false
	}
	o, err := choice.Build(struct{}{})
	return err == nil && o.ComputedRate != nil
}

var optimizers = plugin.NewRegistry[struct{}, Optimizer]("optimizer")

// Optimizers lists the registered optimizers.
func Optimizers() *plugin.Registry[struct{}, Optimizer] { return optimizers }

// RegisterOptimizer registers an optimizer as `optimizer: {type: name}`.
func RegisterOptimizer[O any](name string, defaults O, New func(O, struct{}) (Optimizer, error)) {
	plugin.Register(optimizers, name, defaults, func(o O, env struct{}) (Optimizer, error) {
		optimizer, err := New(o, env)
		optimizer.Part = partOf(name, o)
		return optimizer, err
	})
}

func init() {
	RegisterOptimizer("adamw", defaultAdamW, func(o AdamW, _ struct{}) (Optimizer, error) { return o.Optimizer(), nil })
	optimizers.SetDefault("adamw")
}

var defaultAdamW = AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

// Default is the optimizer of plans that have none.
func Default() Optimizer { return defaultAdamW.Optimizer() }

// AdamW updates each weight by the running mean of its gradient over the root of that of its square (Loshchilov &
// Hutter 2019, "Decoupled Weight Decay Regularization"), as torch.optim.AdamW does. It keeps both means, m and v: two
// numbers for each weight w. With the clipped gradient g, the rate r and t the updates of the tensor so far, this one
// included, an update is
//
//	m ← β₁·m + (1-β₁)·g    v ← β₂·v + (1-β₂)·g²
//	w ← (1 - r·weight_decay)·w - r·m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + eps)
//
// Tensors with two dimensions or more decay: weights of layers, embeddings, W and R of LSTMs, the transitions of a crf.
// Biases, norms and other vectors do not, as if weight_decay were 0. A tensor whose gradient is 0 as a whole, as that
// of a head without a batch in the step, is not updated at all: it does not decay, and t does not count the step.
type AdamW struct {
	Beta1   float64 `yaml:"beta1" range:"[0,1)" doc:"decay rate of the mean of gradients"`
	Beta2   float64 `yaml:"beta2" range:"[0,1)" doc:"decay rate of the mean of their squares"`
	Epsilon float64 `yaml:"eps" range:"[1e-30,1]" doc:"added to the root of the squares' mean"`
}

// Optimizer returns the optimizer with these options.
func (a AdamW) Optimizer() Optimizer {
	return optimizerOf("adamw", nn.AdamW(a), a)
}

func init() { RegisterOptimizer("sgd", SGD{Momentum: 0.9}, newSGD) }

// SGD updates weights by their gradients, or with `momentum` by a sum of past gradients in which older ones fade, as
// torch.optim.SGD does. It keeps one number for each weight, none without momentum. `weight_decay` times each weight of
// a matrix is added to its gradient. Transformers learn slowly by it: the gradients of their layers differ in size,
// which AdamW and Adafactor divide out.
type SGD struct {
	Momentum  float64 `yaml:"momentum" range:"[0,1)" doc:"factor of the past gradients' sum; 0: none is kept"`
	Dampening float64 `yaml:"dampening" range:"[0,1)" doc:"a gradient is added to the sum times 1 minus it"`
	Nesterov  bool    `yaml:"nesterov" doc:"whether the sum is taken a step ahead (Sutskever et al. 2013)"`
}

func newSGD(o SGD, _ struct{}) (Optimizer, error) {
	switch {
	case o.Nesterov && o.Momentum == 0:
		return Optimizer{}, errors.New("nesterov: it is a kind of momentum, which is 0; want a momentum above 0")
	case o.Nesterov && o.Dampening > 0:
		return Optimizer{}, errors.New("nesterov: it is not defined with dampening; leave out one of them")
	}
	return o.Optimizer(), nil
}

// Optimizer returns the optimizer with these options.
func (s SGD) Optimizer() Optimizer {
	return optimizerOf("sgd", nn.SGD(s), s)
}

func init() {
	RegisterOptimizer("adafactor",
		Adafactor{Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1, DecayRate: -0.8}, newAdafactor)
}

// Adafactor updates each weight by its gradient over a root of the gradient's mean square, of which it keeps only the
// means of a matrix's rows and columns (Shazeer & Stern 2018, "Adafactor: Adaptive Learning Rates with Sublinear Memory
// Cost"), as transformers' Adafactor does: next to no memory, where AdamW keeps two numbers for each weight. With R and
// C the running means of the squares of the gradient G of a matrix, over the columns and over the rows,
//
//	U = G / √(R·Cᵀ / mean(R))    W ← W - rate·U / max(1, rms(U)/clip_threshold)
//
// The defaults are those of transformers' Trainer, with the learning rate of the experiment. With `relative_step` the
// optimizer computes the rate itself, usually beside `scale_parameter`, which multiplies it by the root mean square
// of the parameter, as in the paper. `beta1` takes a number for each weight. A step subtracts the rate times
// `weight_decay` of each weight of a matrix.
type Adafactor struct {
	Epsilon1      float64 `yaml:"eps1" range:"[1e-37,1]" doc:"added to the squares of gradients"`
	Epsilon2      float64 `yaml:"eps2" range:"[0,1]" doc:"least factor of the rate by scale_parameter"`
	ClipThreshold float64 `yaml:"clip_threshold" range:"(0,)" doc:"largest root mean square of updates"`
	DecayRate     float64 `yaml:"decay_rate" range:"[-1,0)" doc:"step t has the weight t^decay_rate in the means"`
	Beta1         float64 `yaml:"beta1" range:"[0,1)" doc:"decay rate of the mean of updates; 0: none is kept"`

	ScaleParameter bool `yaml:"scale_parameter" doc:"whether the rate is relative to the weights' size"`
	RelativeStep   bool `yaml:"relative_step" doc:"whether the rate is 1/√t at step t, at most 0.01"`
	WarmupInit     bool `yaml:"warmup_init" doc:"whether the rate of relative_step is at most t/1e6"`
}

func newAdafactor(o Adafactor, _ struct{}) (Optimizer, error) {
	if o.WarmupInit && !o.RelativeStep {
		return Optimizer{}, errors.New("warmup_init: no effect without relative_step; want relative_step: true")
	}
	return o.Optimizer(), nil
}

// Optimizer returns the optimizer with these options.
func (a Adafactor) Optimizer() Optimizer {
	o := optimizerOf("adafactor", nn.Adafactor(a), a)
	if a.RelativeStep {
		o.ComputedRate = nn.Adafactor(a).RelativeRate // without the factors of scale_parameter
	}
	return o
}

// optimizerOf returns the optimizer by a rule, which is called kind and has options.
func optimizerOf(kind string, rule nn.Rule, options any) Optimizer {
	return Optimizer{
		New:       func(weightDecay float64) *nn.Optimizer { return nn.NewOptimizer(rule, weightDecay) },
		StateSize: nn.NewOptimizer(rule, 0).StateSize,
		Part:      partOf(kind, options),
	}
}
