package nn

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// AdamW updates parameters by Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW does.
type AdamW struct {
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // parameters that decay are multiplied by 1 - rate·WeightDecay

	moments  slotted   // running means of each parameter's gradient and of its square
	averages *averages // running means of the parameters, which a step updates; nil: none

	// active are the rows of a parameter that may have a moment other than 0; nil: unknown. They are not part of the
	// state: activate derives them from the moments, and updating a row whose moments and gradient are 0 gives the same
	// bits whether it is active or not.
	active map[*Param][]bool
}

var _ Optimizer = (*AdamW)(nil)

// NewAdamW returns an optimizer with the usual constants.
func NewAdamW(weightDecay float64) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: weightDecay, active: map[*Param][]bool{}}
}

// Step implements Optimizer. In a table whose gradient is recorded by rows, rows that never had a gradient only decay,
// which is all that an update does to them.
func (a *AdamW) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		state := a.moments.of(w, a.slots)
		mean, square := state.slots[0], state.slots[1]

		k := kernel.AdamW{Rate: rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon}
		if w.Decay {
			k.Decay = a.WeightDecay
		}
		w.Changed()
		if g.touched == nil {
			delete(a.active, w)
			a.averages.whole(w, &k)
			k.Step(w.Data, mean, square, g.values, factor, state.steps)
			continue
		}
		if a.averages.begins(w) {
			delete(a.active, w) // which rows are idle must follow from the state, in a restored training too
		}
		a.active[w] = activate(a.active[w], g.touched, mean, square)
		active := a.averages.rows(w, a.active[w], &k)
		k.StepRows(w.Data, mean, square, g.values, w.rowLength(), active, factor, state.steps)
	}
}

// slots returns the slots of a parameter.
func (a *AdamW) slots(w *Param) []slotSize {
	return []slotSize{{"mean", len(w.Data)}, {"square", len(w.Data)}}
}

// StateSize returns how many numbers it keeps of a parameter.
func (a *AdamW) StateSize(w *Param) int { return sizeOf(a.slots(w)) }

// State implements Optimizer.
func (a *AdamW) State(w *Param) OptimizerState { return a.moments.state(w, a.slots) }

// SetState implements Optimizer.
func (a *AdamW) SetState(params []*Param, states []OptimizerState) error {
	if err := a.moments.set(params, states, a.slots); err != nil {
		return err
	}
	for _, w := range params {
		delete(a.active, w)
	}
	return nil
}

// activate adds the rows touched in this step to those that are active. Rows of steps that did not record them, nil,
// are derived from the moments.
func activate(active []bool, touched, mean, square []float32) []bool {
	if active == nil {
		active = make([]bool, len(touched))
		length := len(mean) / len(touched)
		for r := range active {
			lo, hi := r*length, (r+1)*length
			active[r] = slices.ContainsFunc(mean[lo:hi], hasBits) || slices.ContainsFunc(square[lo:hi], hasBits)
		}
	}
	for r, t := range touched {
		active[r] = active[r] || t != 0
	}
	return active
}

// hasBits reports whether v is not +0. It is true for -0, to which a moment too small for float32 may be rounded.
func hasBits(v float32) bool { return math.Float32bits(v) != 0 }
