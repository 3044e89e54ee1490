package kernel

import (
	"math"
	"testing"
)

// plainGELU is the formula in float64.
func plainGELU(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * (1 + math.Erf(v/math.Sqrt2)) / 2
	}
	return y
}

func TestErfIsMathErf(t *testing.T) {
	var largest float64
	for x := -8.0; x < 8; x += 0.000137 {
		largest = max(largest, math.Abs(erf(x)-math.Erf(x)))
	}
	if !(largest <= 3e-8) { // half the distance between the float32 numbers below 1
		t.Errorf("erf is up to %v from math.Erf", largest)
	}
	if x := erf(math.NaN()); x == x {
		t.Errorf("erf(NaN) = %v, want NaN", x)
	}
}

func TestGELU(t *testing.T) {
	x := append(normal(1, 20000), 0, 1e-20, -1e-20, 30, -30, 5.5, -5.5)
	got := make([]float32, len(x))
	GELU(got, x)
	near(t, "GELU", got, plainGELU(float64s(x)), 2e-7)
	same(t, "GELU", func() []float32 { GELU(got, x); return got })

	bad := []float32{float32(math.NaN()), float32(math.Inf(1))}
	GELU(bad, bad)
	if bad[0] == bad[0] || !math.IsInf(float64(bad[1]), 1) {
		t.Errorf("GELU(NaN, +Inf) = %v, want the same", bad)
	}
}

func TestGELUBackwardAddsTheSlope(t *testing.T) {
	x, weights, dx := normal(1, 300), normal(2, 300), normal(3, 300)
	want := slopes(plainGELU, x, weights)
	for i, d := range dx {
		want[i] += float64(d)
	}
	GELUBackward(dx, x, weights)
	near(t, "GELUBackward", dx, want, 1e-6)
}
