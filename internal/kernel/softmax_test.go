package kernel

import (
	"math"
	"slices"
	"testing"
)

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
