package calibration

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The set of an example that is exchangeable with n others has its label with a probability from 1 - alpha to 1 - alpha
// + 1/(n+1) (Lei et al. 2018, theorem 2): the mean over many draws is between these but for three standard errors.
func TestSetsCoverAsPromised(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const times, fresh = 2000, 20
	for _, c := range []struct {
		n     int
		alpha float64
	}{{19, 0.1}, {50, 0.1}, {200, 0.05}, {99, 0.3}} {
		sum, squares := 0.0, 0.0
		for range times {
			draw := func(n int) []float32 {
				all := make([]float32, n)
				for i := range all {
					all[i] = float32(math.Sqrt(random.Float64()))
				}
				return all
			}
			least, ok := SetThreshold(draw(c.n), c.alpha)
			if !ok {
				t.Fatalf("no threshold of %d examples", c.n)
			}
			coverage := Coverage(draw(fresh), least)
			sum, squares = sum+coverage, squares+coverage*coverage
		}
		mean := sum / times
		slack := 3 * math.Sqrt((squares/times-mean*mean)/times)
		if low, high := 1-c.alpha, 1-c.alpha+1/float64(c.n+1); mean < low-slack || mean > high+slack {
			t.Errorf("%d examples, alpha %v: coverage %v, want %v to %v within %v", c.n, c.alpha, mean, low, high,
				slack)
		}
	}
}

func TestSetThreshold(t *testing.T) {
	gold := []float32{0.9, 0.2, 0.8, 0.5, 0.6, 0.7, 0.95, 0.99, 0.4}
	for _, c := range []struct {
		alpha float64
		least float32
		ok    bool
	}{
		{0.1, 0.2, true},    // rank ⌈10·0.9⌉ = 9 of 9
		{0.2, 0.4, true},    // rank 8
		{0.5, 0.7, true},    // rank 5
		{0.05, 0, false},    // rank ⌈10·0.95⌉ = 10
		{0.999, 0.99, true}, // rank ⌈10·0.001⌉ = 1
	} {
		if least, ok := SetThreshold(gold, c.alpha); least != c.least || ok != c.ok {
			t.Errorf("alpha %v: %v, %v; want %v, %v", c.alpha, least, ok, c.least, c.ok)
		}
	}
	if least, ok := SetThreshold(nil, 0.1); least != 0 || ok {
		t.Errorf("of no examples: %v, %v; want 0, false", least, ok)
	}
	if least, ok := SetThreshold([]float32{0.5, -1, 0.6}, 0.2); least != 0 || ok {
		t.Errorf("rank 4 of 3: %v, %v", least, ok)
	}
	if least, _ := SetThreshold([]float32{0.5, -1, 0.6, 0.7}, 0.2); least != 0 {
		t.Errorf("an unknown label at the rank: %v, want 0: all labels", least)
	}
}

func TestSetListsTheLikeliestFirst(t *testing.T) {
	p := []float32{0.2, 0.3, 0.1, 0.3, float32(math.NaN())}
	if got := Set(p, 0.2); !slices.Equal(got, []int{1, 3, 0}) {
		t.Errorf("set %v, want [1 3 0]", got)
	}
	if got := Set(p, 0.5); got == nil || len(got) != 0 {
		t.Errorf("set %v, want an empty one", got)
	}
}

func TestHalvesAreDisjointAndFixed(t *testing.T) {
	for n := range 20 {
		first, second := Halves(n)
		again, _ := Halves(n)
		all := slices.Sorted(slices.Values(slices.Concat(first, second)))
		if len(first) != n/2 || len(all) != n || len(slices.Compact(all)) != n || !slices.Equal(first, again) {
			t.Errorf("%d examples: %v and %v, then %v", n, first, second, again)
		}
	}
}

func TestHalvesCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	gold := make([]float32, 1000)
	for i := range gold {
		gold[i] = random.Float32()
	}
	mean, deviation := HalvesCoverage(gold, 0.1, 200)
	if mean < 0.895 || mean > 0.907 || deviation < 0.005 || deviation > 0.05 {
		t.Errorf("coverage %v ± %v, want about 0.9 ± 0.019", mean, deviation)
	}
}
