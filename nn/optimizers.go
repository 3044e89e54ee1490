package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Optimizer updates parameters by their gradients. A snapshot holds what it keeps of a parameter from step to step.
type Optimizer struct {
	rule     Rule
	decay    float64 // weight decay, of parameters that decay
	states   map[*Param]*slotState
	averages *averages // running means of the parameters, which AdamW updates; nil: none
}

// Rule is how an optimizer updates a parameter: AdamW, Adafactor or SGD.
type Rule interface {
	// slots returns the slots that are kept of w, always the same; none where it keeps nothing.
	slots(w *Param) []slotSize
	// update changes w by its gradient g. s has w's slots, zeros in the first update, and counts this one.
	update(w *Param, g *paramGradient, s *slotState, u update)
}

type update struct {
	factor      float32   // of the gradient
	rate, decay float64   // learning rate, weight decay
	averages    *averages // nil: none, or no update has begun them
}

// slotState is what an optimizer keeps of a parameter that has been updated.
type slotState struct {
	OptimizerState
	// active are the rows that may have a moment of AdamW other than 0; nil: unknown. They are derived from the slots:
	// updating a row whose moments and gradient are 0 gives the same bits whether it is active or not.
	active []bool
}

// NewOptimizer returns an optimizer without state. Parameters that decay do so by weightDecay, in the way of the rule.
func NewOptimizer(rule Rule, weightDecay float64) *Optimizer {
	return &Optimizer{rule: rule, decay: weightDecay, states: map[*Param]*slotState{}}
}

// NewAdamW returns an optimizer by AdamW with the usual constants.
func NewAdamW(weightDecay float64) *Optimizer {
	return NewOptimizer(DefaultAdamW, weightDecay)
}

// Step updates params by their gradients times factor at a learning rate. A parameter without a gradient, or frozen, is
// not changed.
func (o *Optimizer) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		u := update{factor: factor, rate: rate}
		if o.averages != nil && o.averages.of != nil {
			u.averages = o.averages
		}
		if w.Decay {
			u.decay = o.decay
		}
		w.Changed()
		o.rule.update(w, g, o.next(w), u)
	}
}

// next returns the state of w for its next update: zeros before the first.
func (o *Optimizer) next(w *Param) *slotState {
	s := o.states[w]
	if s == nil {
		s = &slotState{}
		for _, slot := range o.rule.slots(w) {
			s.Slots = append(s.Slots, Slot{slot.name, kernel.Floats(slot.values)})
		}
		if len(s.Slots) == 0 { // nothing is kept
			return s
		}
		o.states[w] = s
	}
	s.Steps++
	return s
}

// StateSize returns how many numbers are kept of a parameter.
func (o *Optimizer) StateSize(w *Param) int {
	n := 0
	for _, s := range o.rule.slots(w) {
		n += s.values
	}
	return n
}

// UpdatesEach reports whether each value is changed by its own gradient and state alone.
func (o *Optimizer) UpdatesEach() bool {
	_, factors := o.rule.(Adafactor)
	return !factors
}

// State returns what is kept of w. The slots' values are the optimizer's own: the caller copies them.
func (o *Optimizer) State(w *Param) OptimizerState {
	if s := o.states[w]; s != nil {
		return s.OptimizerState
	}
	return OptimizerState{}
}

// SetState replaces what is kept of each of params by copies. It returns an error, and changes nothing, where a state
// is not one that State returns for such a parameter.
func (o *Optimizer) SetState(params []*Param, states []OptimizerState) error {
	for i, w := range params {
		if err := checkSlots(states[i], o.rule.slots(w)); err != nil {
			return fmt.Errorf("parameter %q: %w", w.Name, err)
		}
	}
	for i, w := range params {
		delete(o.states, w)
		if states[i].Steps == 0 {
			continue
		}
		s := &slotState{OptimizerState: OptimizerState{Steps: states[i].Steps}}
		for _, slot := range states[i].Slots {
			s.Slots = append(s.Slots, Slot{slot.Name, slices.Clone(slot.Values)})
		}
		o.states[w] = s
	}
	return nil
}

// AdamW updates parameters by Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW does:
// parameters that decay are multiplied by 1 - rate·decay.
type AdamW struct {
	Beta1   float64 `yaml:"beta1" range:"[0,1)" doc:"decay rate of the mean of gradients"`
	Beta2   float64 `yaml:"beta2" range:"[0,1)" doc:"decay rate of the mean of their squares"`
	Epsilon float64 `yaml:"eps" range:"[1e-30,1]" doc:"added to the root of the squares' mean"`
}

// DefaultAdamW has the usual constants.
var DefaultAdamW = AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

func (a AdamW) slots(w *Param) []slotSize {
	return []slotSize{{"mean", len(w.Data)}, {"square", len(w.Data)}} // of the gradient
}

// update implements Rule. In a table whose gradient is recorded by rows, rows that never had a gradient only decay,
// which is all that an update does to them.
func (a AdamW) update(w *Param, g *paramGradient, s *slotState, u update) {
	mean, square := s.Slots[0].Values, s.Slots[1].Values
	k := kernel.AdamW{Rate: u.rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon, Decay: u.decay}
	if g.touched == nil {
		s.active = nil
		if u.averages != nil {
			u.averages.whole(w, &k)
		}
		k.Step(w.Data, mean, square, g.values, u.factor, s.Steps)
		return
	}
	if u.averages != nil && u.averages.begins(w) {
		s.active = nil // which rows are idle must follow from the state, in a restored training too
	}
	s.active = activate(s.active, g.touched, mean, square)
	active := s.active
	if u.averages != nil {
		active = u.averages.rows(w, active, &k)
	}
	k.StepRows(w.Data, mean, square, g.values, w.rowLength(), active, u.factor, s.Steps)
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
// the means of each matrix's rows and columns (Shazeer & Stern 2018), as transformers' Adafactor does. Parameters that
// decay are multiplied by 1 - rate·decay.
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

// RelativeRate returns the learning rate of an update, counted from 1: 1/√step, at most 0.01, or with WarmupInit at
// most 1e-6·step.
func (a Adafactor) RelativeRate(step int) float64 {
	most := 1e-2
	if a.WarmupInit {
		most = 1e-6 * float64(step)
	}
	return min(most, 1/math.Sqrt(float64(step)))
}

func (a Adafactor) update(w *Param, g *paramGradient, s *slotState, u update) {
	k := kernel.Adafactor{
		Rate: u.rate, Beta1: a.Beta1, Beta2: 1 - math.Pow(float64(s.Steps), a.DecayRate),
		Epsilon: a.Epsilon1, Clip: a.ClipThreshold, Decay: u.decay,
	}
	if a.RelativeStep {
		k.Rate = a.RelativeRate(s.Steps)
	}
	if a.ScaleParameter {
		squares := kernel.SumSquaresOfRows(w.Data, w.rowLength(), nil)
		k.Rate *= max(a.Epsilon2, math.Sqrt(squares/float64(len(w.Data))))
	}
	var mean []float32
	if a.Beta1 != 0 {
		mean = s.Slots[len(s.Slots)-1].Values
	}
	if factored(w) {
		k.StepMatrix(w.Data, s.Slots[0].Values, s.Slots[1].Values, mean, g.values, u.factor, g.touched)
	} else {
		k.StepVector(w.Data, s.Slots[0].Values, mean, g.values, u.factor)
	}
}

// factored reports whether the squares of w are kept as means of rows and columns. Of a parameter with more than two
// dimensions, all but the last are the rows.
func factored(w *Param) bool { return len(w.Shape) > 1 }

func (a Adafactor) slots(w *Param) []slotSize {
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

// SGD updates parameters by gradient descent with momentum, as torch.optim.SGD does. Without momentum it keeps nothing
// of a parameter. The decay times a parameter that decays is added to its gradient.
type SGD struct {
	Momentum  float64 `yaml:"momentum" range:"[0,1)" doc:"factor of the past gradients' sum; 0: none is kept"`
	Dampening float64 `yaml:"dampening" range:"[0,1)" doc:"a gradient is added to the sum times 1 minus it"`
	Nesterov  bool    `yaml:"nesterov" doc:"whether the sum is taken a step ahead (Sutskever et al. 2013)"`
}

func (s SGD) update(w *Param, g *paramGradient, kept *slotState, u update) {
	k := kernel.SGD{Rate: u.rate, Momentum: s.Momentum, Dampening: s.Dampening, Nesterov: s.Nesterov, Decay: u.decay}
	var velocity []float32
	if s.Momentum != 0 {
		velocity = kept.Slots[0].Values
	}
	k.Step(w.Data, velocity, g.values, u.factor, kept.Steps == 1)
}

func (s SGD) slots(w *Param) []slotSize {
	if s.Momentum == 0 {
		return nil
	}
	return []slotSize{{"velocity", len(w.Data)}}
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
type CosineCurve struct {
	Cycles float64 `yaml:"num_cycles" range:"(0,)" doc:"waves of the cosine; 0.5 falls to 0 once"`
}

// At returns ½·(1 + cos(2π·Cycles·done/of)).
func (c CosineCurve) At(done, of int) float64 {
	progress := float64(done) / float64(max(1, of))
	return max(0, 0.5*(1+math.Cos(2*math.Pi*c.Cycles*progress)))
}

// PolynomialCurve is a Curve that falls to End by a power of the steps left. At has End as a fraction of the highest
// rate, an experiment as a rate.
type PolynomialCurve struct {
	Power float64 `yaml:"power" range:"(0,)" doc:"of the fraction of steps left; 1: a straight line"`
	End   float64 `yaml:"lr_end" range:"[0,)" doc:"learning rate of the last step, below learning_rate"`
}

// At returns (1-End)·(1-done/of)^Power + End.
func (p PolynomialCurve) At(done, of int) float64 {
	left := 1 - float64(done)/float64(max(1, of))
	return (1-p.End)*math.Pow(left, p.Power) + p.End
}
