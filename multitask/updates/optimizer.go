// Package updates has what a training makes of gradients: optimizers and schedules by name, the rates of layers and
// when they begin to learn.
package updates

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Optimizer is the rule by which a training updates parameters. Those of one type and with the same options give the
// same bytes.
type Optimizer struct {
	Rule nn.Rule // nil: that of Default
	Part
}

// Of returns the optimizer by a rule, whose fields are the options of a type.
func Of(kind string, rule nn.Rule) Optimizer { return Optimizer{rule, partOf(kind, rule)} }

// New returns an optimizer without state. Matrices decay by weightDecay, in the way of the rule.
func (o Optimizer) New(weightDecay float64) *nn.Optimizer {
	return nn.NewOptimizer(o.Rule, weightDecay)
}

// ComputedRate returns the learning rate as a function of the step, counted from 1; nil: it is the plan's. It is
// without the factors of scale_parameter.
func (o Optimizer) ComputedRate() func(step int) float64 {
	if a, ok := o.Rule.(Adafactor); ok && a.RelativeStep {
		return a.RelativeRate
	}
	return nil
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
	return err == nil && o.ComputedRate() != nil
}

var optimizers = plugin.NewRegistry[struct{}, Optimizer]("optimizer")

// Optimizers lists the registered optimizers.
func Optimizers() *plugin.Registry[struct{}, Optimizer] { return optimizers }

// RegisterOptimizer registers a rule as `optimizer: {type: name}`. check returns an error of options that do not fit
// each other.
func RegisterOptimizer[R nn.Rule](name string, defaults R, check func(R) error) {
	plugin.Register(optimizers, name, defaults, func(rule R, _ struct{}) (Optimizer, error) {
		return Of(name, rule), check(rule)
	})
}

func init() {
	RegisterOptimizer("adamw", nn.DefaultAdamW, func(AdamW) error { return nil })
	optimizers.SetDefault("adamw")
}

// Default is the optimizer of plans that have none.
func Default() Optimizer { return Of("adamw", nn.DefaultAdamW) }

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
type AdamW = nn.AdamW

func init() { RegisterOptimizer("sgd", SGD{Momentum: 0.9}, checkSGD) }

// SGD updates weights by their gradients, or with `momentum` by a sum of past gradients in which older ones fade, as
// torch.optim.SGD does. It keeps one number for each weight, none without momentum. `weight_decay` times each weight of
// a matrix is added to its gradient. Transformers learn slowly by it: the gradients of their layers differ in size,
// which AdamW and Adafactor divide out.
type SGD = nn.SGD

func checkSGD(o SGD) error {
	switch {
	case o.Nesterov && o.Momentum == 0:
		return errors.New("nesterov: it is a kind of momentum, which is 0; want a momentum above 0")
	case o.Nesterov && o.Dampening > 0:
		return errors.New("nesterov: it is not defined with dampening; leave out one of them")
	}
	return nil
}

func init() {
	RegisterOptimizer("adafactor",
		Adafactor{Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1, DecayRate: -0.8}, checkAdafactor)
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
type Adafactor = nn.Adafactor

func checkAdafactor(o Adafactor) error {
	if o.WarmupInit && !o.RelativeStep {
		return errors.New("warmup_init: no effect without relative_step; want relative_step: true")
	}
	return nil
}
