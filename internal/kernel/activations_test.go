package kernel

import (
	"math"
	"slices"
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

// plainSoftmax is the formula in float64.
func plainSoftmax(x []float64) []float64 {
	y := make([]float64, len(x))
	top, sum := slices.Max(x), 0.0
	for i, v := range x {
		y[i] = math.Exp(v - top)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

func TestSoftmax(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		for _, x := range [][]float32{{3}, normal(1, 5), normal(2, 300), {1e4, -1e4, 9999}, {-3e38, 3e38}, {-1e4, -1e4},
			{float32(math.Inf(-1)), 2, 3}} {
			want := plainSoftmax(float64s(x))
			Softmax(x)
			near(t, "Softmax", x, want, 2e-7)
		}
		Softmax(nil)
	})
}

func TestSoftmaxPropagatesNaN(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			for _, n := range []int{3, 8, 21, 100} {
				for at := range n {
					x := normal(1, n)
					x[at] = float32(bad)
					Softmax(x)
					if i := slices.IndexFunc(x, func(v float32) bool { return v == v }); i >= 0 && math.IsNaN(bad) ||
						x[at] == x[at] {
						t.Fatalf("Softmax with %v at %d is %v", bad, at, x)
					}
				}
			}
		}
	})
}

func TestSoftmaxBackwardIsTheSlope(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		x, d := normal(1, 40), normal(2, 40)
		want := slopes(plainSoftmax, x, d)
		Softmax(x)
		SoftmaxBackward(d, x)
		near(t, "SoftmaxBackward", d, want, 1e-6)
	})
}

func TestVectorExponentialIsExact(t *testing.T) {
	x := numbers(-3e38, 3e38)
	for _, s := range available()[1:] {
		t.Run(s.name, func(t *testing.T) {
			got := slices.Clone(x)
			s.exps(got, 0)
			for i, v := range x {
				want := math.Exp(float64(v))
				switch {
				case want < 0x1p-125*(1-1e-5):
					want = 0
				case want < 0x1p-125*(1+1e-5) && got[i] == 0:
					continue
				case float32(want) == float32(math.Inf(1)) && got[i] == float32(want):
					continue
				}
				if !(math.Abs(float64(got[i])-want) <= 0.7*ulp*want) { // measured: 0.68
					t.Fatalf("exp(%v) = %v, want %v", v, got[i], want)
				}
			}
		})
	}
}

func TestExponentialsOfWhatIsNoNumber(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		payload := math.Float32frombits(0x7fc001ff) // a NaN with bits that an exponent is made of
		for x, want := range map[float32]float32{
			nan: nan, payload: nan, inf: inf, -inf: 0, 0: 1, 88.72283: math.Float32frombits(0x7f7fff84), 88.73: inf,
			104: inf, -150: 0, 1e4: inf, -1e4: 0, 3e38: inf, -3e38: 0,
		} {
			row := []float32{x}
			sum := use.exps(row, 0)
			if !alike(row[0], want) || !alike(sum, want) {
				t.Errorf("exps(%v) = %v, the sum %v; want %v", x, row[0], sum, want)
			}
		}
	})
}

func TestMaximum(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		nan, low := float32(math.NaN()), float32(math.Inf(-1))
		if got := use.maximum(nil); got != low {
			t.Errorf("the maximum of an empty row is %v", got)
		}
		for _, n := range lengths()[6:] {
			for at := range n {
				row := repeated(-3e38, n)
				row[at] = -2
				if got := use.maximum(row); got != -2 {
					t.Fatalf("the maximum of %v is %v", row, got)
				}
				row[(at+5)%n] = low
				row[at] = nan
				if got := use.maximum(row); got == got {
					t.Fatalf("the maximum of %v is %v", row, got)
				}
			}
			if got := use.maximum(repeated(low, n)); got != low {
				t.Fatalf("the maximum of -Inf alone is %v", got)
			}
		}
	})
}

func TestSoftmaxLoopsEqualThePlainOnes(t *testing.T) {
	for _, l := range []loop{
		{name: "maximum", slices: 1, bound: 0, run: func(s *set, x [][]float32, _ int) []float32 {
			if len(x[0]) == 0 {
				return nil
			}
			return []float32{s.maximum(x[0])}
		}},
		{name: "exps", slices: 1, bound: 3e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			return []float32{s.exps(x[0], 0.5)}
		}},
		{name: "softmax", slices: 1, bound: 2e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			s.softmax(x[0])
			return nil
		}},
		{name: "softmaxBackward", slices: 2, bound: 3e-6, run: func(s *set, x [][]float32, _ int) []float32 {
			s.softmaxBackward(x[0], x[1])
			return nil
		}},
		{name: "dot", slices: 2, bound: 3e-6,
			run: func(s *set, x [][]float32, _ int) []float32 { return []float32{s.dot(x[0], x[1])} }},
		{name: "softmaxGradient", slices: 2, elementwise: true, bound: 3e-7,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.softmaxGradient(x[0], x[1], 0.25)
				return nil
			}},
	} {
		l.check(t)
	}
}

func TestSoftmaxAllocatesNothing(t *testing.T) {
	y, d := normal(1, 300), normal(2, 300)
	allocatesNothing(t, map[string]func(){
		"Softmax":         func() { Softmax(y) },
		"SoftmaxBackward": func() { SoftmaxBackward(d, y) },
	})
}

func BenchmarkSoftmax(b *testing.B) {
	for name, n := range map[string]int{"13": 13, "128": 128, "512": 512} {
		x, y, d := normal(1, n), make([]float32, n), make([]float32, n)
		benchmarkSets(b, n, map[string]func(s *set){
			"Softmax" + name:         func(s *set) { copy(y, x); s.softmax(y) },
			"SoftmaxBackward" + name: func(s *set) { copy(d, x); s.softmaxBackward(d, y) },
		})
	}
}

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

func TestExpIsMathExp(t *testing.T) {
	for x := -750.0; x < 750; x += 0.0137 {
		got, want := exp(x), math.Exp(x)
		if got != want && !(math.Abs(got-want) <= 1e-8*want) {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if x := exp(0); x != 1 {
		t.Errorf("exp(0) = %v, want 1", x)
	}
	if x := exp(math.Inf(-1)); x != 0 {
		t.Errorf("exp(-Inf) = %v, want 0", x)
	}
	if x := exp(math.Inf(1)); !math.IsInf(x, 1) {
		t.Errorf("exp(+Inf) = %v, want +Inf", x)
	}
	if x := exp(math.NaN()); x == x {
		t.Errorf("exp(NaN) = %v, want NaN", x)
	}
}

func BenchmarkExp(b *testing.B) {
	for name, f := range map[string]func(float64) float64{"exp": exp, "math.Exp": math.Exp} {
		b.Run(name, func(b *testing.B) {
			x := float64s(normal(1, 1000))
			for b.Loop() {
				for _, v := range x {
					f(v)
				}
			}
		})
	}
}

func TestGatedGELU(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		x, gate, weights := normal(1, 9000), normal(2, 9000), normal(3, 9000)
		gelu := func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }
		out, d, dGate := make([]float32, 9000), slices.Clone(weights), make([]float32, 9000)
		Product{M: 90, N: 100, C: x, After: Epilogue{GELU: out, Gate: gate}}.Multiply() // of K = 0: C is x
		GatedGELUBackward(d, dGate, x, gate)
		var want, wantD, wantGate []float64
		for i, v := range float64s(x) {
			g, w := float64(gate[i]), float64(weights[i])
			want = append(want, gelu(v)*g)
			wantD = append(wantD, w*g*(gelu(v+1e-5)-gelu(v-1e-5))/2e-5)
			wantGate = append(wantGate, w*gelu(v))
		}
		near(t, "GELU times gate", out, want, 2e-6)
		near(t, "gradient of x", d, wantD, 2e-5)
		near(t, "gradient of gate", dGate, wantGate, 5e-6)
	})
}
