package kernel

import (
	"maps"
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

// near fails if a value of got differs from want by more than tolerance, or one of them is NaN.
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

// same fails unless do returns the same numbers with 1, 2 and 3 threads.
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

// ulp is the largest relative distance of a float32 to the next.
const ulp = 1.0 / (1 << 23)

// numbers returns float32 numbers from low to high, of all exponents, some 100,000 of each sign.
func numbers(low, high float32) []float32 {
	var x []float32
	for bits := uint32(0); bits < math.Float32bits(float32(math.Inf(1))); bits += 20011 { // a prime
		v := math.Float32frombits(bits)
		for _, v := range []float32{v, -v} {
			if v >= low && v <= high {
				x = append(x, v)
			}
		}
	}
	return x
}

func repeated(v float32, n int) []float32 { return slices.Repeat([]float32{v}, n) }

// alike reports whether a and b have the same bits, or both are NaN.
func alike(a, b float32) bool {
	return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
}

// allocatesNothing fails if one of do allocates after its first call.
func allocatesNothing(t *testing.T, do map[string]func()) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	defer SetThreads(0)
	for name, do := range do {
		for n := 1; n <= 2; n++ {
			SetThreads(n)
			do()
			if allocs := testing.AllocsPerRun(20, do); allocs > 0 {
				t.Errorf("%s with %d threads allocates %v times", name, n, allocs)
			}
		}
	}
}

// benchmarkSets measures loops over n elements with each set.
func benchmarkSets(b *testing.B, n int, loops map[string]func(s *set)) {
	for _, name := range slices.Sorted(maps.Keys(loops)) {
		for _, s := range available() {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				for b.Loop() {
					loops[name](s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
			})
		}
	}
}
