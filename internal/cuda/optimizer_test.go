//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

func TestAdamW(t *testing.T) {
	d := openRows(t)
	a := kernel.AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1}
	for _, n := range []int{1, 3, 4, 1023, 1028} {
		w, m, v := normals(1, n), make([]float32, n), make([]float32, n)
		dw, dm, dv, low := upload(d, w), upload(d, m), upload(d, v), d.emptyOf(cuda.BFloat16, n)
		for step := 1; step <= 3; step++ {
			g := normals(uint64(step)+5, n)
			for i := 0; i < n; i += 3 {
				g[i] = 0 // never a gradient: only decays
			}
			const scale = 0.7
			b1, b2 := math.Pow(a.Beta1, float64(step)), math.Pow(a.Beta2, float64(step))
			constants := [8]float32{scale, float32(1 - a.Beta1), float32(a.Beta2), float32(1 - a.Beta2), a.Factor(),
				float32(a.Rate / (1 - b1)), float32(1 / math.Sqrt(1-b2)), float32(a.Epsilon)}
			to := low
			if step == 2 {
				to = 0
			}
			d.AdamW(dw, dm, dv, upload(d, g), to, n, constants)
			a.Step(w, m, v, g, scale, step)
			what := fmt.Sprintf("%d values, step %d", n, step)
			got := download[float32](d, dw, n)
			closeTo(t, what, got, wide(w), 1e-6)
			closeTo(t, what+", m", download[float32](d, dm, n), wide(m), 1e-6)
			closeTo(t, what+", v", download[float32](d, dv, n), wide(v), 1e-6)
			if to != 0 {
				sameBits(t, what+", low", d.load(cuda.BFloat16, low, n), roundedTo(cuda.BFloat16, got))
			}
		}
	}
	t.Run("a gradient of zero without epsilon leaves the weight", func(t *testing.T) {
		w, zero := upload(d, []float32{3, 4}), upload(d, []float32{0, float32(math.NaN())})
		constants := [8]float32{1, 0.1, 0.9, 0.1, 1, 1, 1, 0}
		d.AdamW(w, upload(d, []float32{0, 0}), upload(d, []float32{0, 0}), zero, 0, 2, constants)
		if got := download[float32](d, w, 2); got[0] != 3 || got[1] == got[1] {
			t.Errorf("weights are %v, want 3 and NaN", got)
		}
	})
}

func TestSquares(t *testing.T) {
	d := openRows(t)
	for _, n := range []int{0, 1, 6, 1030, 65536, 65541, 140000} {
		g := normals(1, n)
		var want float64
		for _, v := range g {
			want += float64(v) * float64(v)
		}
		run := func() float64 {
			sums := cuda.SquareSums(n)
			partial, out := upload(d, make([]float64, sums)), upload(d, []float64{math.NaN()})
			d.Squares(partial, upload(d, g), n)
			d.SumDoubles(out, partial, sums)
			return download[float64](d, out, 1)[0]
		}
		got := run()
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("Σ of the squares of %d values is %v, want %v", n, got, want)
		}
		if again := run(); again != got {
			t.Errorf("Σ of the squares of %d values is %v, then %v", n, got, again)
		}
	}
	partial, out := upload(d, []float64{1, 2, math.Inf(1)}), upload(d, []float64{0})
	d.SumDoubles(out, partial, 3)
	if got := download[float64](d, out, 1)[0]; !math.IsInf(got, 1) {
		t.Errorf("Σ of 1, 2, ∞ is %v", got)
	}
}
