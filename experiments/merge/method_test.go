package merge

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMethodsFollowTheirFormulas compares merged weights with those of scripts/fixtures/merge.py.
func TestMethodsFollowTheirFormulas(t *testing.T) {
	text, err := os.ReadFile("testdata/methods.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Params []string
		Base   [][]float32
		Runs   [][][]float32
		Masks  [][]int // of each run, all parameters one after the other
		Cases  []struct {
			Method         string
			Scale, Density float64
			Weights        []float64
			Merged         []float64
		}
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cases {
		o, err := Options{Method: c.Method, Scale: c.Scale, Density: c.Density, Weights: c.Weights}.filled(len(f.Runs))
		if err != nil {
			t.Fatal(err)
		}
		combination := newCombination(o, f.Base, f.Runs)
		combination.kept = func(run int, param string) mask {
			at := 0
			for p := range slices.Index(f.Params, param) {
				at += len(f.Base[p])
			}
			return func() bool { at++; return f.Masks[run][at-1] == 1 }
		}
		var got []float32
		for p, name := range f.Params {
			var runs [][]float32
			for _, run := range f.Runs {
				runs = append(runs, run[p])
			}
			got = append(got, combination.of(name, f.Base[p], runs)...)
		}
		for i, want := range c.Merged {
			if !(math.Abs(float64(got[i])-want) <= 1e-6) {
				t.Errorf("%+v: weight %d is %v, want %v", o, i, got[i], want)
			}
		}
	}
}

func TestTheTrimmedMagnitudeIsTheKthLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	base, run := make([][]float32, 3), make([][]float32, 3)
	var all []float32
	for p, n := range []int{1000, 0, 337} {
		base[p], run[p] = make([]float32, n), make([]float32, n)
		for i := range n {
			run[p][i] = float32(r.NormFloat64() * math.Exp(4*r.NormFloat64()))
			if i%10 == 0 {
				run[p][i] = 0
			}
			all = append(all, float32(math.Abs(float64(run[p][i]))))
		}
	}
	slices.Sort(all)
	for _, density := range []float64{1e-9, 0.001, 0.2, 0.5, 0.95, 1} {
		want := all[len(all)-int(math.Ceil(density*float64(len(all))))]
		if got := leastKept(density, base, run); got != want {
			t.Errorf("density %v: %v, want %v", density, got, want)
		}
	}
	if got := leastKept(0.5, nil, nil); got != 0 {
		t.Errorf("of no numbers: %v, want 0", got)
	}
}

func TestDroppedNumbersAreAFunctionOfSeedRunAndParameter(t *testing.T) {
	kept := func(seed uint64, run int, param string) (all []bool, n int) {
		next := Options{Seed: seed, Density: 0.3}.random(run, param)
		for range 10000 {
			all = append(all, next())
			if all[len(all)-1] {
				n++
			}
		}
		return all, n
	}
	first, n := kept(1, 0, "a")
	if math.Abs(float64(n)-3000) > 5*math.Sqrt(10000*0.3*0.7) {
		t.Errorf("%d of 10000 are kept with probability 0.3", n)
	}
	if again, _ := kept(1, 0, "a"); !slices.Equal(first, again) {
		t.Error("the same seed keeps other numbers")
	}
	for _, other := range []struct {
		seed  uint64
		run   int
		param string
	}{{2, 0, "a"}, {1, 1, "a"}, {1, 0, "b"}} {
		if got, _ := kept(other.seed, other.run, other.param); slices.Equal(first, got) {
			t.Errorf("%+v keeps the same numbers", other)
		}
	}
}

func TestOptionsOfMethods(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Method: "ties", Density: 1, Scale: 2, Weights: []float64{0, 3}}, ""},
		{Options{Method: "tie"}, `argument method: no method "tie"; did you mean "ties"`},
		{Options{Method: "mean", Density: 0.5}, "argument density: method mean has none"},
		{Options{Method: "dare", Density: 1.5}, "argument density: want a number above 0, at most 1, have 1.5"},
		{Options{Method: "ties", Density: -1}, "argument density: want a number above 0, at most 1, have -1"},
		{Options{Method: "mean", Scale: -1}, "argument scale: want a number above 0, have -1"},
		{Options{Method: "mean", Weights: []float64{1}}, "argument weight: 1 number for 2 runs"},
		{Options{Method: "mean", Weights: []float64{1, -1}}, "argument weight: want numbers from 0 to 1e+100, have -1"},
		{Options{Method: "mean", Weights: []float64{1e308, 1}},
			"argument weight: want numbers from 0 to 1e+100, have 1e+308"},
		{Options{Method: "mean", Weights: []float64{0, 0}}, "argument weight: want one above 0, have 0 0"},
	} {
		_, err := c.o.filled(2)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
