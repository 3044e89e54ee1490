package kernel

import (
	"math"
	"testing"
)

func TestTanh(t *testing.T) {
	x := numbers(-3e38, 3e38)
	got := make([]float32, len(x))
	inEachSet(t, func(t *testing.T) {
		Tanh(got, x)
		for i, v := range x {
			// Measured: 1.97 ulp.
			if want := math.Tanh(float64(v)); !(math.Abs(float64(got[i])-want) <= max(2*ulp*math.Abs(want),
				2*math.SmallestNonzeroFloat32)) {
				t.Fatalf("Tanh(%v) = %v, want %v", v, got[i], want)
			}
		}
		same(t, "Tanh", func() []float32 { Tanh(got, x); return got })

		nan, inf, zero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
		payload := math.Float32frombits(0x7fc001ff) // a NaN with payload bits that the code uses as an exponent
		for x, want := range map[float32]float32{nan: nan, payload: nan, inf: 1, -inf: -1, 10: 1, -10: -1} {
			y := []float32{x, 0, zero}
			if use.tanh(y, y); !alike(y[0], want) || !alike(y[1], 0) || !alike(y[2], zero) {
				t.Errorf("Tanh(%v, 0, -0) = %v, want %v, 0, -0", x, y, want)
			}
		}
	})
}

func TestTanhLoopEqualsThePlainOne(t *testing.T) {
	loop{name: "tanh", slices: 2, elementwise: true, bound: 3e-7, run: func(s *set, x [][]float32, _ int) []float32 {
		s.tanh(x[0], x[1])
		return nil
	}}.check(t)
}

func TestTanhAllocatesNothing(t *testing.T) {
	x, y := normal(1, 20000), make([]float32, 20000)
	allocatesNothing(t, map[string]func(){"Tanh": func() { Tanh(y, x) }})
}

func BenchmarkTanh(b *testing.B) {
	const n = 4096
	x, y := normal(1, n), make([]float32, n)
	benchmarkSets(b, n, map[string]func(s *set){"Tanh": func(s *set) { s.tanh(y, x) }})
}
