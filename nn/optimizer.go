package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Optimizer updates parameters by their gradients. A snapshot holds what it keeps of a parameter from step to step.
type Optimizer interface {
	// Step updates params by their gradients times factor at a learning rate. A parameter without a gradient, or
	// frozen, is not changed.
	Step(params []*Param, gradients Gradients, factor float32, rate float64)
	// State returns what is kept of w. The slots' values are the optimizer's own: the caller copies them.
	State(w *Param) OptimizerState
	// SetState replaces what is kept of each of params. It returns an error, and changes nothing, where a state is not
	// one that State returns for such a parameter.
	SetState(params []*Param, states []OptimizerState) error
}

// OptimizerState is what an optimizer keeps of a parameter.
type OptimizerState struct {
	Steps int    // updates of the parameter
	Slots []Slot // always the same, in the same order; none before the first update
}

// Slot is a vector that an optimizer keeps of a parameter, such as the running mean of its gradient.
type Slot struct {
	Name   string
	Values []float32
}

// AdamW updates parameters by Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW does.
type AdamW struct {
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // parameters that decay are multiplied by 1 - rate·WeightDecay

	moments  map[*Param]*moments // of each parameter that has been updated
	averages *averages           // running means of the parameters, which a step updates; nil: none
}

var _ Optimizer = (*AdamW)(nil)

// moments are running means of a parameter's gradient and of its square.
type moments struct {
	steps        int // updates of the parameter
	mean, square []float32

	// active are the rows that may have a moment other than 0; nil: unknown. It is not part of the state: activate
	// derives it from the moments, and updating a row whose moments and gradient are 0 gives the same bits whether it
	// is active or not.
	active []bool
}

// NewAdamW returns an optimizer with the usual constants.
func NewAdamW(weightDecay float64) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: weightDecay, moments: map[*Param]*moments{}}
}

// Step implements Optimizer. In a table whose gradient is recorded by rows, rows that never had a gradient only decay,
// which is all that an update does to them.
func (a *AdamW) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		s := a.moments[w]
		if s == nil {
			s = &moments{mean: kernel.Floats(len(w.Data)), square: kernel.Floats(len(w.Data))}
			a.moments[w] = s
		}
		s.steps++

		k := kernel.AdamW{Rate: rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon}
		if w.Decay {
			k.Decay = a.WeightDecay
		}
		w.Changed()
		if g.touched == nil {
			s.active = nil
			a.averages.whole(w, &k)
			k.Step(w.Data, s.mean, s.square, g.values, factor, s.steps)
			continue
		}
		s.activate(g.touched)
		active := a.averages.rows(w, s.active, &k)
		k.StepRows(w.Data, s.mean, s.square, g.values, w.rowLength(), active, factor, s.steps)
	}
}

// Names of AdamW's slots.
const (
	slotMean   = "mean"
	slotSquare = "square"
)

// StateSize returns how many numbers it keeps of a parameter.
func (a *AdamW) StateSize(w *Param) int { return 2 * len(w.Data) }

// State implements Optimizer.
func (a *AdamW) State(w *Param) OptimizerState {
	m := a.moments[w]
	if m == nil {
		return OptimizerState{}
	}
	return OptimizerState{Steps: m.steps, Slots: []Slot{{slotMean, m.mean}, {slotSquare, m.square}}}
}

// SetState implements Optimizer.
func (a *AdamW) SetState(params []*Param, states []OptimizerState) error {
	all := make([]*moments, len(params))
	for i, w := range params {
		m, err := newMoments(w, states[i])
		if err != nil {
			return fmt.Errorf("parameter %q: %w", w.Name, err)
		}
		all[i] = m
	}
	for i, w := range params {
		delete(a.moments, w)
		if all[i] != nil {
			a.moments[w] = all[i]
		}
	}
	return nil
}

// newMoments copies the moments of w from its state, nil before its first update.
func newMoments(w *Param, s OptimizerState) (*moments, error) {
	if s.Steps == 0 && len(s.Slots) == 0 {
		return nil, nil
	}
	if s.Steps < 1 || len(s.Slots) != 2 {
		return nil, fmt.Errorf("%d updates and %d slots of the optimizer's state; AdamW has 2 after an update",
			s.Steps, len(s.Slots))
	}
	for i, name := range []string{slotMean, slotSquare} {
		if slot := s.Slots[i]; slot.Name != name || len(slot.Values) != len(w.Data) {
			return nil, fmt.Errorf("slot %q of the optimizer's state has %d values; want %q with %d",
				slot.Name, len(slot.Values), name, len(w.Data))
		}
	}
	return &moments{steps: s.Steps, mean: slices.Clone(s.Slots[0].Values), square: slices.Clone(s.Slots[1].Values)}, nil
}

// activate adds the rows touched in this step to those that are active. Rows of steps that did not record them are
// derived from the moments.
func (s *moments) activate(touched []float32) {
	if s.active == nil {
		s.active = make([]bool, len(touched))
		length := len(s.mean) / len(touched)
		for r := range s.active {
			lo, hi := r*length, (r+1)*length
			s.active[r] = slices.ContainsFunc(s.mean[lo:hi], hasBits) || slices.ContainsFunc(s.square[lo:hi], hasBits)
		}
	}
	for r, t := range touched {
		s.active[r] = s.active[r] || t != 0
	}
}

// hasBits reports whether v is not +0. It is true for -0, to which a moment too small for float32 may be rounded.
func hasBits(v float32) bool { return math.Float32bits(v) != 0 }
