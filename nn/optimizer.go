package nn

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Optimizer updates parameters by their gradients. A snapshot holds what it keeps of a parameter from step to step.
type Optimizer interface {
	// Step updates params by their gradients times factor at a learning rate. A parameter without a gradient, or
	// frozen, is not changed.
	Step(params []*Param, gradients Gradients, factor float32, rate float64)
	// Moments returns what is kept of w, nil before its first update. It is the optimizer's own: the caller copies it.
	Moments(w *Param) *Moments
	// SetMoments replaces what is kept of w; nil: nothing.
	SetMoments(w *Param, m *Moments)
}

// AdamW updates parameters by Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW does.
type AdamW struct {
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // parameters that decay are multiplied by 1 - rate·WeightDecay

	moments map[*Param]*Moments // of each parameter that has been updated
}

var _ Optimizer = (*AdamW)(nil)

// Moments are running means of a parameter's gradient and of its square.
type Moments struct {
	Steps        int // updates of this parameter
	Mean, Square []float32

	// active are the rows that may have a moment other than 0; nil: unknown. It is not part of the state: activate
	// derives it from the moments, and updating a row whose moments and gradient are 0 gives the same bits whether it
	// is active or not.
	active []bool
}

// NewAdamW returns an optimizer with the usual constants.
func NewAdamW(weightDecay float64) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: weightDecay, moments: map[*Param]*Moments{}}
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
			s = &Moments{Mean: kernel.Floats(len(w.Data)), Square: kernel.Floats(len(w.Data))}
			a.moments[w] = s
		}
		s.Steps++

		k := kernel.AdamW{Rate: rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon}
		if w.Decay {
			k.Decay = a.WeightDecay
		}
		w.Changed()
		if g.touched == nil {
			s.active = nil
			k.Step(w.Data, s.Mean, s.Square, g.values, factor, s.Steps)
			continue
		}
		s.activate(g.touched)
		k.StepRows(w.Data, s.Mean, s.Square, g.values, w.rowLength(), s.active, factor, s.Steps)
	}
}

// Moments implements Optimizer.
func (a *AdamW) Moments(w *Param) *Moments { return a.moments[w] }

// SetMoments implements Optimizer.
func (a *AdamW) SetMoments(w *Param, m *Moments) {
	if m == nil {
		delete(a.moments, w)
		return
	}
	a.moments[w] = m
}

// activate adds the rows touched in this step to those that are active. Rows of steps that did not record them are
// derived from the moments.
func (s *Moments) activate(touched []float32) {
	if s.active == nil {
		s.active = make([]bool, len(touched))
		length := len(s.Mean) / len(touched)
		for r := range s.active {
			lo, hi := r*length, (r+1)*length
			s.active[r] = slices.ContainsFunc(s.Mean[lo:hi], hasBits) || slices.ContainsFunc(s.Square[lo:hi], hasBits)
		}
	}
	for r, t := range touched {
		s.active[r] = s.active[r] || t != 0
	}
}

// hasBits reports whether v is not +0. It is true for -0, to which a moment too small for float32 may be rounded.
func hasBits(v float32) bool { return math.Float32bits(v) != 0 }
