package nn

import (
	"errors"
	"testing"
)

func TestNumbersThatDoNotArriveAreAnErrorOfTheNorm(t *testing.T) {
	params := NewParams(1)
	params.Normal("matrix", 1, 300, 100) // more values than are shared as one
	s := NewHostStore(params.All(), NewAdamW(0.01))
	allocate := func(n int) ([]float32, error) { return make([]float32, n), nil }
	if err := s.Place(params.All(), allocate); err != nil {
		t.Fatal(err)
	}
	bounds, want := s.Units(params.All()), errors.New("a rank does not answer")
	s.Own([][2]int{{0, bounds[1]}}, func([]float64) error { return want })
	if _, err := s.SumSquares(); !errors.Is(err, want) {
		t.Errorf("SumSquares = %v, want %v", err, want)
	}
}
