package multitask

import (
	"math"
	"slices"
)

// softmax returns exp(x_i) / Σ_j exp(x_j); nothing of nothing.
func softmax(x []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	largest, sum := slices.Max(x), 0.0
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = math.Exp(v - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
