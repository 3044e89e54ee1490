package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// normal returns n numbers from a normal distribution.
func normal(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func float64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near fails where got is further from want than tolerance, or one of them is no number.
func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// slopes returns the gradient of Σ f(x)·weights at x by central differences.
func slopes(f func(x []float64) []float64, x, weights []float32) []float64 {
	const step = 1e-6
	at := float64s(x)
	loss := func() (sum float64) {
		for i, y := range f(at) {
			sum += y * float64(weights[i])
		}
		return sum
	}
	d := make([]float64, len(x))
	for i, v := range at {
		at[i] = v + step
		above := loss()
		at[i] = v - step
		d[i] = (above - loss()) / (2 * step)
		at[i] = v
	}
	return d
}

// same fails unless do gives the same numbers at 1, 2 and 3 threads.
func same(t *testing.T, what string, do func() []float32) {
	t.Helper()
	defer SetThreads(0)
	SetThreads(1)
	want := slices.Clone(do())
	for threads := 2; threads <= 3; threads++ {
		SetThreads(threads)
		if !slices.Equal(do(), want) {
			t.Errorf("%s differs with %d threads", what, threads)
		}
	}
}
