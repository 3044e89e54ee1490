package kernel

import (
	"math"
	"testing"
)

// plainGELU is the formula in float64, with erfc to avoid cancellation in 1−erf.
func plainGELU(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * math.Erfc(-v/math.Sqrt2) / 2
	}
	return y
}

// plainSlope is the formula of its derivative.
func plainSlope(x float64) float64 {
	return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
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
	inEachSet(t, func(t *testing.T) {
		x := append(normal(1, 20000), 0, 1e-20, -1e-20, 30, -30, 5.5, -5.5)
		got := make([]float32, len(x))
		GELU(got, x)
		near(t, "GELU", got, plainGELU(float64s(x)), 2e-7)
		same(t, "GELU", func() []float32 { GELU(got, x); return got })
	})
}

func TestGELUBackwardAddsTheGradient(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		x, weights, dx := normal(1, 300), normal(2, 300), normal(3, 300)
		want := slopes(plainGELU, x, weights)
		for i, d := range dx {
			want[i] += float64(d)
		}
		GELUBackward(dx, x, weights)
		near(t, "GELUBackward", dx, want, 1e-6)
	})
}

// The bounds are what was measured, rounded up. Of torch.nn.functional.gelu (2.15, AVX2) were measured, in float32 and
// in the same units: 3.8 above 0, 5.4 at -1 to 0, 32 at -2 to -1, 7800 at -4 to -2, all of the value below -6, and
// 2.4e-7 for the slope.
func TestVectorGELUIsExact(t *testing.T) {
	x := numbers(-20, 20)
	got, slope, from0 := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	want := plainGELU(float64s(x))
	for _, s := range available()[1:] {
		t.Run(s.name, func(t *testing.T) {
			s.gelu(got, x)
			for i := range slope {
				slope[i], from0[i] = 1, 0
			}
			s.geluGradient(slope, x)
			s.geluBackward(from0, x, repeated(1, len(x)))
			for i, v := range x {
				off := math.Abs(float64(got[i]) - want[i])
				relative := 0.0 // bound of the relative error
				switch {
				case v >= 0:
					relative = 0.85 * ulp
				case v > -1:
					relative = 1.3 * ulp
				case v > -2:
					relative = 2.8 * ulp
				case v > -4:
					relative = 6.5 * ulp
				case v > -7:
					relative = 60 * ulp
				default: // 1e-11 and less
					relative = 1
				}
				if !(off <= max(relative*math.Abs(want[i]), math.SmallestNonzeroFloat32)) {
					t.Fatalf("GELU(%v) = %v, want %v", v, got[i], want[i])
				}
				if off := math.Abs(float64(slope[i]) - plainSlope(float64(v))); !(off <= 1.1e-7) || v < 0 &&
					!(off <= 5e-8) {
					t.Fatalf("the slope at %v is %v, want %v", v, slope[i], plainSlope(float64(v)))
				}
				if from0[i] != slope[i] {
					t.Fatalf("GELUBackward adds %v at %v, want the gradient %v", from0[i], v, slope[i])
				}
			}
		})
	}
}

func TestGELULoopsEqualThePlainOnes(t *testing.T) {
	for _, l := range []loop{
		{name: "gelu", slices: 2, elementwise: true, bound: 3e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			s.gelu(x[0], x[1])
			return nil
		}},
		{name: "gelu in place", slices: 1, elementwise: true, bound: 3e-7,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.gelu(x[0], x[0])
				return nil
			}},
		{name: "geluGradient", slices: 2, elementwise: true, bound: 1e-6,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.geluGradient(x[0], x[1])
				return nil
			}},
		{name: "geluBackward", slices: 3, elementwise: true, bound: 1e-6,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.geluBackward(x[0], x[1], x[2])
				return nil
			}},
	} {
		l.check(t)
	}
}

func TestGELUPropagatesNaN(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		nan, inf, zero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
		payload := math.Float32frombits(0x7fc001ff) // a NaN with payload bits that the code uses as an exponent
		for _, c := range []struct{ x, y, slope float32 }{
			{nan, nan, nan}, {payload, nan, nan}, {inf, inf, nan}, {-inf, nan, nan}, {0, 0, 0.5}, {zero, zero, 0.5},
			{3e38, 3e38, 1}, {-3e38, zero, 0}, {1e4, 1e4, 1}, {-1e4, zero, 0}, {20, 20, 1}, {-20, zero, 0},
			{1e-40, 0.5e-40, 0.5}, {-1e-40, -0.5e-40, 0.5},
		} {
			y, slope := []float32{c.x}, []float32{1}
			use.gelu(y, y)
			use.geluGradient(slope, []float32{c.x})
			if !alike(y[0], c.y) || !alike(slope[0], c.slope) && slope[0] != c.slope {
				t.Errorf("GELU(%v) = %v with slope %v, want %v with slope %v", c.x, y[0], slope[0], c.y, c.slope)
			}
		}
	})
}

func TestGELUAllocatesNothing(t *testing.T) {
	x, y, d := normal(1, 20000), make([]float32, 20000), make([]float32, 20000)
	allocatesNothing(t, map[string]func(){
		"GELU":         func() { GELU(y, x) },
		"GELUBackward": func() { GELUBackward(d, x, y) },
	})
}

func BenchmarkGELU(b *testing.B) {
	const n = 4096 // the slices lie in the first two caches, as a product's tiles do
	x, y, dOut := normal(1, n), make([]float32, n), normal(2, n)
	benchmarkSets(b, n, map[string]func(s *set){
		"GELU":         func(s *set) { s.gelu(y, x) },
		"GELUGradient": func(s *set) { copy(y, dOut); s.geluGradient(y, x) },
	})
}
