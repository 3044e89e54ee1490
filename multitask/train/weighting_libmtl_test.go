package train

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

// libmtl is testdata/weightings_libmtl.json, which scripts/fixtures/weightings_libmtl.py writes by PyTorch: its doc
// comment says of what.
type libmtl struct {
	Full   []stepOfTexts
	Traces map[string]map[string]struct {
		Trace []libmtlStep
		End   map[string][]float32
	}
	Minima []struct {
		Dots     [][]float64
		C, Least float64
	}
}

// libmtlStep is a step of a fixture.
type libmtlStep struct {
	Loss, Norm      float64
	Losses, Factors map[string]float64 // by task
	Draws           []float64
}

func readLibMTL(t *testing.T) (w libmtl) {
	t.Helper()
	data, err := os.ReadFile("testdata/weightings_libmtl.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// givenDraws is RLW with the random numbers that a fixture has.
type givenDraws struct {
	weightings.RLW
	draws func() []float64
}

func (g givenDraws) Weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	return g.Factors(g.draws(), losses)
}

func TestWeightingsFollowLibMTL(t *testing.T) {
	w, fixture := readWeightingTrace(t), readLibMTL(t)
	partial := w.Steps
	for _, c := range []struct {
		name, options string
		epoch         int // steps
	}{
		{"dwa", "", 5}, {"dwa", "every: 5", 0}, {"rlw", "", 0}, {"gradnorm", "learning_rate: 5.0e-2", 5},
		{"cagrad", "", 0}, {"famo", "", 0},
	} {
		for _, which := range []string{"full", "partial"} {
			w.Steps, w.Weights = partial, map[string]float64{"topic": 1, "tags": 0.5, "mood": 2}
			if which == "full" {
				w.Steps, w.Weights = fixture.Full, map[string]float64{"topic": 1, "tags": 1, "mood": 1}
			}
			t.Run(c.name+" "+c.options+" "+which, func(t *testing.T) {
				want, n := fixture.Traces[c.name][which], 0
				training := w.training(t, func(m *multitask.Model) weightings.Weighting {
					part := registered(weightings.Registry(), c.name, c.options, weightings.EnvOf(m, 1))
					if rlw, ok := part.(weightings.RLW); ok {
						return givenDraws{rlw, func() []float64 { return want.Trace[n].Draws }}
					}
					return part
				})
				largest := 0.0 // deviation of a factor
				for ; n < len(want.Trace); n++ {
					if c.epoch > 0 {
						training.state.Epoch = n / c.epoch
					}
					step, err := training.Update(w.batches(n))
					if err != nil {
						t.Fatal(err)
					}
					largest = max(largest, compareStep(t, n, step, want.Trace[n]))
				}
				nearEnd(t, training.model.Model, want.End)
				t.Logf("largest deviations: factors %.1e, parameters %.1e",
					largest, deviation(training.model.Model, want.End))
			})
		}
	}
}

// compareStep compares a step with a fixture's, and returns the largest deviation of a factor.
func compareStep(t *testing.T, n int, step Step, want libmtlStep) (largest float64) {
	t.Helper()
	near(t, n, "loss", step.Loss, want.Loss)
	near(t, n, "gradient", step.GradientNorm, want.Norm)
	for _, l := range step.Losses {
		factor, ok := want.Factors[l.Task]
		if ok != (l.Units > 0) {
			t.Fatalf("step %d: %v units of %s", n+1, l.Units, l.Task)
		}
		if !ok {
			continue
		}
		got := l.Factor
		if step.TaskFactors != nil {
			got = step.TaskFactors[l.Task]
		}
		near(t, n, "loss of "+l.Task, l.Mean(), want.Losses[l.Task])
		near(t, n, "factor of "+l.Task, got, factor)
		largest = max(largest, math.Abs(got-factor))
	}
	return largest
}

// deviation is the largest difference of a model's parameters from others.
func deviation(m *multitask.Model, want map[string][]float32) (largest float64) {
	for _, p := range m.Params.All() {
		for i, v := range p.Data {
			largest = max(largest, math.Abs(float64(v-want[p.Name][i])))
		}
	}
	return largest
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
	x, sum := weightings.LeastOnSimplex(dots, slope, radius), 0.0
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
	for i, m := range readLibMTL(t).Minima {
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
			if at := averseTo(dots, 0.5, weightings.Softmax(z)); !(found <= at+1e-9*math.Abs(at)) {
				t.Fatalf("trial %d: minimum %v, and %v elsewhere", trial, found, at)
			}
		}
	}
}
