package nn

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// AdamW updates parameters by Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW does.
type AdamW struct {
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // a step's share of the rate that is taken off parameters that decay
	// State is what is kept of each parameter that has been updated: a checkpoint holds it.
	State map[*Param]*Moments
}

// Moments are running means of a parameter's gradient and of its square.
type Moments struct {
	Steps        int // updates of this parameter
	Mean, Square []float32
}

// NewAdamW returns an optimizer with the usual constants.
func NewAdamW(weightDecay float64) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: weightDecay, State: map[*Param]*Moments{}}
}

// Step updates params by their gradients at a learning rate. A parameter without a gradient, or frozen, is left alone.
func (a *AdamW) Step(params []*Param, gradients Gradients, rate float64) {
	for _, w := range params {
		g := gradients[w]
		if g == nil || w.Frozen {
			continue
		}
		s := a.State[w]
		if s == nil {
			s = &Moments{Mean: make([]float32, len(w.Data)), Square: make([]float32, len(w.Data))}
			a.State[w] = s
		}
		s.Steps++

		k := kernel.AdamW{Rate: rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon}
		if w.Decay {
			k.Decay = a.WeightDecay
		}
		k.Step(w.Data, s.Mean, s.Square, g, 1, s.Steps)
	}
}

// Clip scales gradients so that their norm over all params is at most limit, as torch's clip_grad_norm_ does, and
// returns the norm they had. Where that is no number the gradients are left as they are, for the caller to see.
func Clip(params []*Param, gradients Gradients, limit float64) float64 {
	sum := 0.0
	for _, w := range params { // in their order, so that the sum is the same each time
		sum += kernel.SumSquares(gradients[w])
	}
	norm := math.Sqrt(sum)
	scale := limit / (norm + 1e-6)
	if !(scale < 1) || math.IsInf(norm, 0) {
		return norm
	}
	for _, w := range params {
		g := gradients[w]
		kernel.Parallel(len(g), elementTile, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				g[i] *= float32(scale)
			}
		})
	}
	return norm
}
