package nn

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

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
		s := a.states.of(w, a.slots)
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
