package kernel

import (
	"math"
	"testing"
)

func TestSumSquares(t *testing.T) {
	x := normal(1, 100003)
	var want float64
	for _, v := range x {
		want += float64(v) * float64(v)
	}
	if got := SumSquares(x); math.Abs(got-want) > 1e-9*want {
		t.Errorf("SumSquares = %v, want %v", got, want)
	}
	same(t, "SumSquares", func() []float32 {
		bits := math.Float64bits(SumSquares(x))
		return []float32{float32(bits >> 40), float32(bits >> 20 & 0xfffff), float32(bits & 0xfffff)}
	})
	if x[7] = float32(math.NaN()); !math.IsNaN(SumSquares(x)) {
		t.Errorf("SumSquares hides NaN")
	}
}
