package weightings

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// minima are those of the fixture that scripts/fixtures/weightings_libmtl.py writes.
func minima(t *testing.T) []struct {
	Dots     [][]float64
	C, Least float64
} {
	t.Helper()
	data, err := os.ReadFile("../train/testdata/weightings_libmtl.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixture struct {
		Minima []struct {
			Dots     [][]float64
			C, Least float64
		}
	}
	if err := json.Unmarshal(data, &fixture); err != nil {
		t.Fatal(err)
	}
	return fixture.Minima
}

// averseTo returns cagrad's objective at x: slope·x + radius·√(xᵀ·dots·x + 1e-8).
func averseTo(dots [][]float64, c float64, x []float64) float64 {
	slope, radius := averseTerms(dots, c)
	linear, square := 0.0, 0.0
	for i, row := range dots {
		linear += slope[i] * x[i]
		for j, v := range row {
			square += x[i] * v * x[j]
		}
	}
	return linear + radius*math.Sqrt(square+1e-8)
}

// averseTerms returns the terms of cagrad's objective: g_t·g_0, and c·|g_0|.
func averseTerms(dots [][]float64, c float64) (slope []float64, radius float64) {
	k, mean := float64(len(dots)), 0.0
	slope = make([]float64, len(dots))
	for i, row := range dots {
		for _, v := range row {
			slope[i] += v / k
		}
		mean += slope[i] / k
	}
	return slope, c*math.Sqrt(max(0, mean)+1e-8) + 1e-8
}

// averseLeast returns the least value of the objective that leastOnSimplex finds.
func averseLeast(t *testing.T, dots [][]float64, c float64) float64 {
	t.Helper()
	slope, radius := averseTerms(dots, c)
	x, sum := leastOnSimplex(dots, slope, radius), 0.0
	for _, v := range x {
		if !(v >= 0) {
			t.Errorf("weight %v", v)
		}
		sum += v
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		t.Errorf("weights %v sum to %v", x, sum)
	}
	return averseTo(dots, c, x)
}

func TestCAGradFindsTheMinimumThatScipyFinds(t *testing.T) {
	for i, m := range minima(t) {
		if found := averseLeast(t, m.Dots, m.C); !(found <= m.Least+1e-9*max(1, math.Abs(m.Least))) {
			t.Errorf("case %d, c %v: minimum %v, want %v", i, m.C, found, m.Least)
		}
	}
}

func TestCAGradsMinimumIsBelowOtherPoints(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 50 {
		// gradients of unequal length; where they have fewer dimensions than there are, they depend on each other
		k := 2 + trial%9
		g, dots := make([][]float64, k), make([][]float64, k)
		for i := range g {
			for range 1 + trial%7 {
				g[i] = append(g[i], r.NormFloat64()*math.Pow(10, float64(i%3)))
			}
		}
		for i := range g {
			for j := range g {
				sum := 0.0
				for d := range g[i] {
					sum += g[i][d] * g[j][d]
				}
				dots[i] = append(dots[i], sum)
			}
		}

		found := averseLeast(t, dots, 0.5)
		for range 2000 {
			z := make([]float64, k)
			for i := range z {
				z[i] = 4 * r.NormFloat64()
			}
			if at := averseTo(dots, 0.5, softmax(z)); !(found <= at+1e-9*math.Abs(at)) {
				t.Fatalf("trial %d: minimum %v, and %v elsewhere", trial, found, at)
			}
		}
	}
}
