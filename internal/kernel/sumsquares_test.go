package kernel

import (
	"math"
	"testing"
)

// sumSquares is of rows of 37, where x has whole ones.
func sumSquares(x []float32) float64 {
	if len(x)%37 == 0 {
		return SumSquaresOfRows(x, 37, nil)
	}
	return SumSquaresOfRows(x, len(x), nil)
}

func TestSumSquares(t *testing.T) { inEachSet(t, testSumSquares) }

func testSumSquares(t *testing.T) {
	x := normal(1, 37*3000) // of several tiles
	var want float64
	for _, v := range x {
		want += float64(v) * float64(v)
	}
	if got := sumSquares(x); !(math.Abs(got-want) <= 1e-9*want) {
		t.Errorf("SumSquares = %v, want %v", got, want)
	}
	same(t, "SumSquares", func() []float32 {
		bits := math.Float64bits(sumSquares(x))
		return []float32{float32(bits >> 40), float32(bits >> 20 & 0xfffff), float32(bits & 0xfffff)}
	})
	if x[7] = float32(math.NaN()); !math.IsNaN(sumSquares(x)) {
		t.Errorf("SumSquares hides NaN")
	}
}

func TestSumSquaresLosesNoSquare(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		for _, v := range []float32{1e-45, -1e-38, 3e38} {
			x := make([]float32, 100)
			x[70] = v
			if got, want := sumSquares(x), float64(v)*float64(v); got != want {
				t.Errorf("SumSquares of %v among zeros = %v, want %v", v, got, want)
			}
		}
	})
}

func TestSumSquaresOfRowsLooksOnlyAtThoseTouched(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		const rows, d = 700, 37
		touched, x := make([]float32, rows), make([]float32, rows*d)
		for i := 0; i < rows; i += 1 + i%5 {
			touched[i] = 1
			copy(x[i*d:], normal(uint64(i), d))
		}
		want := SumSquaresOfRows(x, d, nil)
		if whole := SumSquaresOfRows(x, len(x), nil); !(math.Abs(want-whole) <= 1e-12*want) {
			t.Errorf("the sum of squares of rows is %v, want %v", want, whole)
		}
		if got := SumSquaresOfRows(x, d, touched); got != want {
			t.Errorf("the sum over the rows touched is %v, want %v", got, want)
		}
		for i := range x {
			if touched[i/d] == 0 {
				x[i] = float32(math.NaN())
			}
		}
		if got := SumSquaresOfRows(x, d, touched); got != want {
			t.Errorf("the sum over the rows touched is %v where others hold NaN, want %v", got, want)
		}
	})
}
