package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestDropoutKeepsItsShareAndTheMean(t *testing.T) {
	const n = 200000
	ones := slices.Repeat([]float32{1}, n)
	for _, rate := range []float64{0, 0.1, 0.5, 0.99} {
		out := make([]float32, n)
		Dropout(out, ones, 7, rate)
		dropped := 0
		for _, v := range out {
			if v == 0 {
				dropped++
			} else if v != float32(1/(1-rate)) {
				t.Fatalf("rate %v keeps 1 as %v", rate, v)
			}
		}
		// Five standard deviations of a binomial distribution.
		if d := math.Abs(float64(dropped)/n - rate); d > 5*math.Sqrt(rate*(1-rate)/n) {
			t.Errorf("rate %v drops %v", rate, float64(dropped)/n)
		}
	}
}

func TestDropoutsOfTwoKeysHaveNothingInCommon(t *testing.T) {
	const n, rate = 200000, 0.5
	ones := slices.Repeat([]float32{1}, n)
	a, b := make([]float32, n), make([]float32, n)
	Dropout(a, ones, 7, rate)
	for name, other := range map[string]func(){
		"the next key":     func() { Dropout(b, ones, 8, rate) },
		"the next text":    func() { newMask(7, rate).of(1).apply(b, ones, 0) },
		"the next element": func() { newMask(7, rate).apply(b, ones, 1) },
	} {
		other()
		both := 0
		for i := range a {
			if a[i] != 0 && b[i] != 0 {
				both++
			}
		}
		if share := float64(both) / n; math.Abs(share-0.25) > 5*math.Sqrt(0.25*0.75/n) {
			t.Errorf("%s keeps %v of what is kept, want a quarter of all", name, share)
		}
	}
}

func TestDropoutBackwardHasTheMaskOfForward(t *testing.T) {
	const n = 20001
	x, dOut, dx := normal(1, n), normal(2, n), normal(3, n)
	out, want := make([]float32, n), slices.Clone(dx)
	Dropout(out, x, 7, 0.3)
	for i, v := range out {
		if v != 0 {
			want[i] += dOut[i] * float32(1/0.7)
		}
	}
	DropoutBackward(dx, dOut, 7, 0.3)
	near(t, "DropoutBackward", dx, float64s(want), 1e-6)
	same(t, "Dropout", func() []float32 { Dropout(out, x, 7, 0.3); return out })
	Dropout(x, x, 7, 0.3)
	if !slices.Equal(x, out) {
		t.Errorf("Dropout in place differs")
	}
}
