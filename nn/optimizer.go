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

const optimizerTile = 1 << 15 // floats

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

		keep := 1.0
		if w.Decay {
			keep = 1 - rate*a.WeightDecay
		}
		step := rate / (1 - math.Pow(a.Beta1, float64(s.Steps)))
		root := 1 / math.Sqrt(1-math.Pow(a.Beta2, float64(s.Steps)))
		kernel.Parallel(len(g), optimizerTile, func(lo, hi int) {
			a.update(w.Data[lo:hi], g[lo:hi], s.Mean[lo:hi], s.Square[lo:hi], float32(keep), float32(step), float32(root))
		})
	}
}

// update is w = keep·w - step·m/(root·√v + ε), with m and v the running means.
func (a *AdamW) update(w, g, m, v []float32, keep, step, root float32) {
	b1, b2, eps := float32(a.Beta1), float32(a.Beta2), float32(a.Epsilon)
	c1, c2 := float32(1-a.Beta1), float32(1-a.Beta2)
	for i, x := range g {
		m[i] = b1*m[i] + c1*x
		v[i] = b2*v[i] + c2*x*x
		w[i] = keep*w[i] - step*m[i]/(root*float32(math.Sqrt(float64(v[i])))+eps)
	}
}

// Clip scales gradients so that their norm over all params is at most limit, and returns the norm they had. A norm
// that is no number is left as it is for the caller to see.
func Clip(params []*Param, gradients Gradients, limit float64) float64 {
	sum := 0.0
	for _, w := range params {
		sum += squares(gradients[w])
	}
	norm := math.Sqrt(sum)
	if math.IsNaN(norm) || math.IsInf(norm, 0) || norm <= limit {
		return norm
	}
	scale := float32(limit / norm)
	for _, w := range params {
		g := gradients[w]
		kernel.Parallel(len(g), optimizerTile, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				g[i] *= scale
			}
		})
	}
	return norm
}

// squares sums x², tile by tile, so that the order is the same with any number of goroutines.
func squares(x []float32) float64 {
	sums := make([]float64, (len(x)+optimizerTile-1)/optimizerTile)
	kernel.Parallel(len(x), optimizerTile, func(lo, hi int) {
		for _, v := range x[lo:hi] {
			sums[lo/optimizerTile] += float64(v) * float64(v)
		}
	})
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}
