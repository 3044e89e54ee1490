package multitask

import (
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Optimizer makes the optimizers of trainings. Those of one kind and with the same options give the same bytes.
type Optimizer interface {
	// New returns an optimizer without state. Matrices decay by weightDecay, in the way of the optimizer.
	New(weightDecay float64) nn.Optimizer
	// StateSize returns how many numbers it keeps of a parameter that learns.
	StateSize(w *nn.Param) int
}

// RateComputer is an Optimizer, and its options, that may compute the learning rate.
type RateComputer interface {
	// ComputedRate returns the learning rate of a step, counted from 1; ok is false where it is the plan's.
	ComputedRate(step int) (rate float64, ok bool)
}

// ComputesRate reports whether an optimizer, or its options, compute the learning rate: the plan's has no effect.
func ComputesRate(of any) bool {
	c, ok := of.(RateComputer)
	if ok {
		_, ok = c.ComputedRate(1)
	}
	return ok
}

var optimizers = plugin.NewRegistry[struct{}, Optimizer]("optimizer")

// Optimizers lists the registered optimizers.
func Optimizers() *plugin.Registry[struct{}, Optimizer] { return optimizers }

// RegisterOptimizer registers an optimizer as `optimizer: {type: name}`.
func RegisterOptimizer[O any](name string, defaults O, New func(O, struct{}) (Optimizer, error)) {
	plugin.Register(optimizers, name, defaults, New)
}

// optimizer returns the plan's optimizer, AdamW where it has none.
func (plan Plan) optimizer() Optimizer {
	if plan.Optimizer == nil {
		return defaultAdamW
	}
	return plan.Optimizer
}

// Averages returns the bytes that running means of the parameters of m take.
func (plan Plan) Averages(m *Model) int64 {
	if plan.Average == 0 {
		return 0
	}
	bytes := int64(0)
	for _, w := range m.Params.All() {
		if w.Learns() {
			bytes += 4 * int64(len(w.Data))
		}
	}
	return bytes
}

// OptimizerState returns the bytes that the optimizer keeps of the parameters of m that learn.
func (plan Plan) OptimizerState(m *Model) int64 {
	bytes := int64(0)
	for _, w := range m.Params.All() {
		if w.Learns() {
			bytes += 4 * int64(plan.optimizer().StateSize(w))
		}
	}
	return bytes
}
