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
	for _, x := range [][]float32{{3}, normal(1, 5), normal(2, 300), {1e4, -1e4, 9999}, {-3e38, 3e38}, {-1e4, -1e4}} {
		want := plainSoftmax(float64s(x))
		Softmax(x)
		near(t, "Softmax", x, want, 2e-7)
	}
	Softmax(nil)
}

func TestSoftmaxPassesOnWhatIsNoNumber(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		x := []float32{1, float32(bad), 2}
		Softmax(x)
		if x[1] == x[1] {
			t.Errorf("Softmax with %v gives %v", bad, x)
		}
	}
}

func TestSoftmaxBackwardIsTheSlope(t *testing.T) {
	x, d := normal(1, 40), normal(2, 40)
	want := slopes(plainSoftmax, x, d)
	Softmax(x)
	SoftmaxBackward(d, x)
	near(t, "SoftmaxBackward", d, want, 1e-6)
}
