package kernel

import (
	"math"
	"testing"
)

func TestAdamWIsItsFormula(t *testing.T) {
	const n = 20000
	a := AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1}
	w, m, v := normal(1, n), make([]float32, n), make([]float32, n)
	want, mean, square := float64s(w), make([]float64, n), make([]float64, n)
	for step := 1; step <= 20; step++ {
		g := normal(uint64(step+1), n)
		clear(g[:n/2])
		if step > 10 {
			clear(g[:3*n/4]) // of which a quarter has had gradients before
		}
		a.Step(w, m, v, g, 0.5, step)
		for i, d := range g {
			d := float64(d) / 2
			mean[i] = a.Beta1*mean[i] + (1-a.Beta1)*d
			square[i] = a.Beta2*square[i] + (1-a.Beta2)*d*d
			want[i] -= a.Rate * a.Decay * want[i]
			fairMean := mean[i] / (1 - math.Pow(a.Beta1, float64(step)))
			fairSquare := square[i] / (1 - math.Pow(a.Beta2, float64(step)))
			want[i] -= a.Rate * fairMean / (math.Sqrt(fairSquare) + a.Epsilon)
		}
	}
	near(t, "AdamW", w, want, 1e-5)
}

func TestAdamWPassesOnWhatIsNoNumber(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		w, m, v := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}
		AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}.Step(w, m, v, []float32{float32(bad), 1}, 1, 1)
		if w[0] == w[0] || w[1] != w[1] {
			t.Errorf("a gradient of %v gives %v", bad, w)
		}
	}
}
