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

// slotted is an optimizer's state of parameters that have been updated.
type slotted map[*Param]*slotState

// slotState is what an optimizer keeps of a parameter: the number of its updates, and a vector for each slot.
type slotState struct {
	steps int
	slots [][]float32
}

// slotSize is a slot of a parameter and its number of values.
type slotSize struct {
	name   string
	values int
}

// sizeOf returns the number of values of all slots.
func sizeOf(slots []slotSize) int {
	n := 0
	for _, s := range slots {
		n += s.values
	}
	return n
}

// next returns the state of w for its next update: zeros before the first.
func (all *slotted) next(w *Param, slots func(*Param) []slotSize) *slotState {
	s := (*all)[w]
	if s == nil {
		s = &slotState{}
		for _, slot := range slots(w) {
			s.slots = append(s.slots, kernel.Floats(slot.values))
		}
		if *all == nil {
			*all = slotted{}
		}
		(*all)[w] = s
	}
	s.steps++
	return s
}

// state returns the state of w as Optimizer.State does.
func (all slotted) state(w *Param, slots func(*Param) []slotSize) OptimizerState {
	s := all[w]
	if s == nil {
		return OptimizerState{}
	}
	state := OptimizerState{Steps: s.steps}
	for i, slot := range slots(w) {
		state.Slots = append(state.Slots, Slot{slot.name, s.slots[i]})
	}
	return state
}

// set replaces the states of params by copies, or returns an error and changes nothing.
func (all *slotted) set(params []*Param, states []OptimizerState, slots func(*Param) []slotSize) error {
	fresh := make([]*slotState, len(params))
	for i, w := range params {
		s := states[i]
		if err := checkSlots(s, slots(w)); err != nil {
			return fmt.Errorf("parameter %q: %w", w.Name, err)
		}
		if s.Steps == 0 {
			continue
		}
		fresh[i] = &slotState{steps: s.Steps}
		for _, slot := range s.Slots {
			fresh[i].slots = append(fresh[i].slots, slices.Clone(slot.Values))
		}
	}
	if *all == nil {
		*all = slotted{}
	}
	for i, w := range params {
		delete(*all, w)
		if fresh[i] != nil {
			(*all)[w] = fresh[i]
		}
	}
	return nil
}

// checkSlots returns an error if a state is not one of those slots, or of no update.
func checkSlots(s OptimizerState, slots []slotSize) error {
	if s.Steps == 0 && len(s.Slots) == 0 {
		return nil
	}
	if s.Steps < 1 || len(s.Slots) != len(slots) || len(slots) == 0 {
		return fmt.Errorf("%d updates and %d slots of the optimizer's state; want %d slots after an update",
			s.Steps, len(s.Slots), len(slots))
	}
	for i, want := range slots {
		if slot := s.Slots[i]; slot.Name != want.name || len(slot.Values) != want.values {
			return fmt.Errorf("slot %q of the optimizer's state has %d values; want %q with %d",
				slot.Name, len(slot.Values), want.name, want.values)
		}
	}
	return nil
}

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
		state := a.moments.next(w, a.slots)
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

// Adafactor updates parameters by their gradients over a root of the gradients' mean squares, of which it keeps only
// the means of each matrix's rows and columns (Shazeer & Stern 2018), as transformers' Adafactor does.
type Adafactor struct {
	Epsilon1      float64 // added to the squares of gradients
	Epsilon2      float64 // least scale of a parameter, with ScaleParameter
	ClipThreshold float64 // an update of a larger root mean square is scaled to it
	DecayRate     float64 // below 0: the means follow the squares of step t by t^DecayRate
	Beta1         float64 // decay rate of the mean of updates; 0: there is none
	WeightDecay   float64 // a parameter that decays is multiplied by 1 - rate·WeightDecay

	ScaleParameter bool // the rate is multiplied by the root mean square of the parameter
	RelativeStep   bool // the rate is RelativeRate of the parameter's updates
	WarmupInit     bool // see RelativeRate

	states slotted
}

var _ Optimizer = (*Adafactor)(nil)

// RelativeRate returns the learning rate of an update, counted from 1: 1/√step, at most 0.01, or with WarmupInit at
// most 1e-6·step.
func (a *Adafactor) RelativeRate(step int) float64 {
	most := 1e-2
	if a.WarmupInit {
		most = 1e-6 * float64(step)
	}
	return min(most, 1/math.Sqrt(float64(step)))
}

// Step implements Optimizer.
func (a *Adafactor) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		s := a.states.next(w, a.slots)
		k := kernel.Adafactor{
			Rate: rate, Beta1: a.Beta1, Beta2: 1 - math.Pow(float64(s.steps), a.DecayRate),
			Epsilon: a.Epsilon1, Clip: a.ClipThreshold,
		}
		if a.RelativeStep {
			k.Rate = a.RelativeRate(s.steps)
		}
		if a.ScaleParameter {
			squares := kernel.SumSquaresOfRows(w.Data, w.rowLength(), nil)
			k.Rate *= max(a.Epsilon2, math.Sqrt(squares/float64(len(w.Data))))
		}
		if w.Decay {
			k.Decay = a.WeightDecay
		}
		var mean []float32
		if a.Beta1 != 0 {
			mean = s.slots[len(s.slots)-1]
		}
		w.Changed()
		if factored(w) {
			k.StepMatrix(w.Data, s.slots[0], s.slots[1], mean, g.values, factor, g.touched)
		} else {
			k.StepVector(w.Data, s.slots[0], mean, g.values, factor)
		}
	}
}

// factored reports whether the squares of w are kept as means of rows and columns. Of a parameter with more than two
// dimensions, all but the last are the rows.
func factored(w *Param) bool { return len(w.Shape) > 1 }

// slots returns the slots of a parameter.
func (a *Adafactor) slots(w *Param) []slotSize {
	all := []slotSize{{"square", len(w.Data)}}
	if factored(w) {
		columns := w.Shape[len(w.Shape)-1]
		all = []slotSize{{"row", len(w.Data) / columns}, {"column", columns}}
	}
	if a.Beta1 != 0 {
		all = append(all, slotSize{"mean", len(w.Data)})
	}
	return all
}

// StateSize returns how many numbers it keeps of a parameter.
func (a *Adafactor) StateSize(w *Param) int { return sizeOf(a.slots(w)) }

// State implements Optimizer.
func (a *Adafactor) State(w *Param) OptimizerState { return a.states.state(w, a.slots) }

// SetState implements Optimizer.
func (a *Adafactor) SetState(params []*Param, states []OptimizerState) error {
	return a.states.set(params, states, a.slots)
}

// SGD updates parameters by gradient descent with momentum, as torch.optim.SGD does. Without momentum it keeps nothing
// of a parameter.
type SGD struct {
	Momentum    float64 // factor of the velocity; 0: there is none
	Dampening   float64 // the gradient is multiplied by 1 minus it where it is added to a velocity
	Nesterov    bool    // the momentum is applied before the gradient (Sutskever et al. 2013)
	WeightDecay float64 // times a parameter that decays is added to its gradient

	velocities slotted
}

var _ Optimizer = (*SGD)(nil)

// Step implements Optimizer.
func (s *SGD) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		k := kernel.SGD{Rate: rate, Momentum: s.Momentum, Dampening: s.Dampening, Nesterov: s.Nesterov}
		if w.Decay {
			k.Decay = s.WeightDecay
		}
		w.Changed()
		if s.Momentum == 0 {
			k.Step(w.Data, nil, g.values, factor, false)
			continue
		}
		state := s.velocities.next(w, s.slots)
		k.Step(w.Data, state.slots[0], g.values, factor, state.steps == 1)
	}
}

// slots returns the slots of a parameter.
func (s *SGD) slots(w *Param) []slotSize {
	if s.Momentum == 0 {
		return nil
	}
	return []slotSize{{"velocity", len(w.Data)}}
}

// StateSize returns how many numbers it keeps of a parameter.
func (s *SGD) StateSize(w *Param) int { return sizeOf(s.slots(w)) }

// State implements Optimizer.
func (s *SGD) State(w *Param) OptimizerState { return s.velocities.state(w, s.slots) }

// SetState implements Optimizer.
func (s *SGD) SetState(params []*Param, states []OptimizerState) error {
	return s.velocities.set(params, states, s.slots)
}

// Schedule is the learning rate over a run: a linear rise, then a curve.
type Schedule struct {
	Warmup int   // steps of the rise
	Steps  int   // of the run
	Curve  Curve // by default LinearCurve
}

// Curve is the learning rate after the warmup.
type Curve interface {
	// At returns the rate as a fraction of the highest after so many steps of the curve, of which there may be 0.
	At(done, of int) float64
}

// Rate returns the rate at a step as a fraction of the highest: step/Warmup up to Warmup, then by the curve, which ends
// at Steps.
func (s Schedule) Rate(step int) float64 {
	if step < s.Warmup {
		return float64(step) / float64(s.Warmup)
	}
	curve := s.Curve
	if curve == nil {
		curve = LinearCurve{}
	}
	of := max(0, s.Steps-s.Warmup)
	return curve.At(min(step-s.Warmup, of), of)
}

// LinearCurve is a Curve that falls to 0.
type LinearCurve struct{}

// At returns 1 - done/of.
func (LinearCurve) At(done, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(of-done) / float64(of)
}

// ConstantCurve is a Curve that stays at the highest rate.
type ConstantCurve struct{}

// At returns 1.
func (ConstantCurve) At(int, int) float64 { return 1 }

// CosineCurve is a Curve of a number of waves of a cosine; half a wave falls to 0 (Loshchilov & Hutter 2017).
type CosineCurve struct{ Cycles float64 }

// At returns ½·(1 + cos(2π·Cycles·done/of)).
func (c CosineCurve) At(done, of int) float64 {
	progress := float64(done) / float64(max(1, of))
	return max(0, 0.5*(1+math.Cos(2*math.Pi*c.Cycles*progress)))
}

// PolynomialCurve is a Curve that falls to End, a fraction of the highest rate, by a power of the steps left.
type PolynomialCurve struct{ Power, End float64 }

// At returns (1-End)·(1-done/of)^Power + End.
func (p PolynomialCurve) At(done, of int) float64 {
	left := 1 - float64(done)/float64(max(1, of))
	return (1-p.End)*math.Pow(left, p.Power) + p.End
}
