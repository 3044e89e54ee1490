package kernel

import (
	"slices"
	"testing"
)

// A step has the same bits with any number of threads, and where rows of zeros are not read.
func TestAdafactorBits(t *testing.T) {
	defer SetThreads(0)
	const rows, d = 900, 131 // two tiles
	touched, g := make([]float32, rows), make([]float32, rows*d)
	for r := range rows {
		if r%3 == 0 {
			touched[r] = 1
			copy(g[r*d:], normal(uint64(r+1), d))
		}
	}
	step := func(threads int, touched []float32, withMean bool) []float32 {
		SetThreads(threads)
		w, row, column := normal(1, rows*d), make([]float32, rows), make([]float32, d)
		a := Adafactor{Rate: 1e-2, Epsilon: 1e-30, Clip: 1, Decay: 0.1}
		var mean []float32
		if withMean {
			a.Beta1, mean = 0.9, make([]float32, rows*d)
		}
		for range 3 {
			a.StepMatrix(w, row, column, mean, g, 0.5, touched)
			a.Beta2 = 0.5
		}
		return slices.Concat(w, row, column, mean)
	}
	for _, withMean := range []bool{false, true} {
		want := step(1, nil, withMean)
		if !slices.Equal(step(2, nil, withMean), want) {
			t.Error("two threads give other bits than one")
		}
		if !slices.Equal(step(2, touched, withMean), want) {
			t.Error("rows of zeros that are not read give other bits")
		}
	}
}
