package train

import (
	"math"
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
}

// libmtlStep is a step of a fixture.
type libmtlStep struct {
	Loss, Norm      float64
	Losses, Factors map[string]float64 // by task
	Draws           []float64
}

func readLibMTL(t *testing.T) (w libmtl) {
	t.Helper()
	readFixture(t, "weightings_libmtl.json", &w)
	return w
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
					if c.name == "rlw" { // with the random numbers that the fixture has
						part = weightings.Random(m.HeadNames(), func(multitask.State, int) []float64 {
							return want.Trace[n].Draws
						})
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
