package kernel

import "math"

// AdamW is the optimizer of Loshchilov & Hutter 2019 in torch.optim.AdamW's order of operations.
type AdamW struct {
	Rate         float64
	Beta1, Beta2 float64
	Epsilon      float64
	Decay        float64
}

// Step updates the weights w and their moments m and v, zero before the first step, by the gradient g times scale.
// step counts from 1.
func (a AdamW) Step(w, m, v, g []float32, scale float32, step int) {
	keep := float32(1 - a.Rate*a.Decay)
	rise1, beta2, rise2 := float32(1-a.Beta1), float32(a.Beta2), float32(1-a.Beta2)
	size := float32(a.Rate / (1 - math.Pow(a.Beta1, float64(step))))
	root := float32(1 / math.Sqrt(1-math.Pow(a.Beta2, float64(step))))
	epsilon := float32(a.Epsilon)
	Parallel(len(w), elementTile, func(lo, hi int) {
		w, m, v, g := w[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi]
		m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
		for i, x := range w {
			d := g[i] * scale
			if d == 0 && m[i] == 0 && v[i] == 0 { // an embedding that no text has had yet: no need to divide 0
				w[i] = x * keep
				continue
			}
			m[i] += rise1 * (d - m[i])
			v[i] = beta2*v[i] + rise2*d*d
			w[i] = x*keep - size*m[i]/(float32(math.Sqrt(float64(v[i])))*root+epsilon)
		}
	})
}
