package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// withoutGradient makes trainings in which the shared parameters have no gradient, or few tasks have one.
func withoutGradient() map[string]func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
	// heads whose weights are zero pass a gradient of exactly zero on to fusion and encoder in the first step, and in
	// each step where only those of tasks are zero that do not learn
	zeroHeads := func(m *multitask.Model, tasks ...string) {
		for _, task := range tasks {
			for _, w := range m.Params.In("heads").In(task).All() {
				clear(w.Data)
			}
		}
	}
	return map[string]func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data){
		"all layers wait": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			p.UnfreezeEvery = 10
			return threeGroups(t, "none", 10)
		},
		"layers begin to learn": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			p.UnfreezeEvery = 1
			return threeGroups(t, "none", 10)
		},
		"a frozen encoder below a shared fusion": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			return threeGroups(t, "all", 10)
		},
		"zero gradients of all tasks at first": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "none", 10)
			zeroHeads(m, "topic", "tags", "mood")
			return m, data
		},
		"zero gradients of one task": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "none", 10)
			zeroHeads(m, "mood")
			m.Groups[2].Tasks[0].Heads[0].Weight = 0
			return m, data
		},
		"one task is labelled": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "none", 10)
			for _, d := range data[1:] {
				for _, e := range d.Train {
					clear(e.Targets)
				}
			}
			return m, data
		},
		"the same gradient of two tasks": func(t *testing.T, p *Plan) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "none", 10)
			data[2] = data[0]
			for i, w := range m.Params.In("heads").In("mood").All() {
				copy(w.Data, m.Params.In("heads").In("topic").All()[i].Data)
			}
			return m, data
		},
	}
}

// Weightings that divide by norms and losses must not do so where a step has none: no factor, loss or parameter is NaN.
func TestWeightingsHoldWithoutSharedGradients(t *testing.T) {
	for name, model := range withoutGradient() {
		for _, weighting := range weightings.Registry().Names() {
			for _, groups := range []string{"1", "2", "all"} {
				t.Run(name+"/"+weighting+"/groups "+groups, func(t *testing.T) {
					plan := smallPlan()
					plan.Epochs, plan.Schedule.Curve = 3, nn.ConstantCurve{}
					m, data := model(t, &plan)
					plan.Weighting = registered(weightings.Registry(), weighting, "", weightings.EnvOf(m, 1))
					plan.Sampler = registered(samplers.Registry(), "uniform", "groups: "+groups, samplers.EnvOf(m,
						plan.Weighting.ComparesTasks()))
					if err := plan.CheckWeighting(m); err != nil {
						t.Skip(err) // without a shared parameter that ever learns
					}
					training, err := New(m, data, plan)
					if err != nil {
						t.Fatal(err)
					}
					events, end := toEnd(t, training)
					checkFiniteSteps(t, events)
					for name, values := range end {
						if floats.NotFinite(values) >= 0 {
							t.Errorf("%s is not finite", name)
						}
					}
				})
			}
		}
	}
}

// checkFiniteSteps checks the figures of all steps among events.
func checkFiniteSteps(t *testing.T, events []any) {
	t.Helper()
	for _, event := range events {
		step, ok := event.(Step)
		if !ok {
			continue
		}
		figures := []float64{step.Loss, step.GradientNorm}
		for _, l := range step.Losses {
			figures = append(figures, l.Factor, l.Sum)
		}
		for _, factor := range step.TaskFactors {
			figures = append(figures, factor)
		}
		if slices.ContainsFunc(figures, isNotFinite) {
			t.Fatalf("step %d: %+v", step.Number, step)
		}
	}
}

// Gradients that are zero, tiny, large or the same have factors that are finite.
func TestFactorsOfDegenerateGradientsAreFinite(t *testing.T) {
	tasks := []string{"topic", "tags", "mood"}
	m, _ := threeGroups(t, "none", 4)
	losses := []multitask.Loss{{Task: "topic", Head: "topic"}, {Task: "tags", Head: "tags"}, {Task: "mood",
		Head: "mood"}}
	for name, dots := range map[string][][]float64{
		"zero":       {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
		"one":        {{0, 0, 0}, {0, 4, 0}, {0, 0, 0}},
		"the same":   {{4, 4, 4}, {4, 4, 4}, {4, 4, 4}},
		"opposite":   {{1, -1, 0}, {-1, 1, 0}, {0, 0, 0}},
		"tiny":       {{5e-324, 0, 0}, {0, 1e-310, -1e-310}, {0, -1e-310, 1e-310}},
		"large":      {{1e70, -1e70, 1e69}, {-1e70, 1e70, -1e69}, {1e69, -1e69, 1e68}},
		"far apart":  {{1e-40, 1e-5, -1e-20}, {1e-5, 1e30, 1e-5}, {-1e-20, 1e-5, 1}},
		"cancelling": {{1, -0.5, -0.5}, {-0.5, 1, -0.5}, {-0.5, -0.5, 1}}, // their mean is zero
	} {
		for _, weighting := range weightings.Registry().Names() {
			w := registered(weightings.Registry(), weighting, "", weightings.EnvOf(m, 1))
			if w.Combine == nil {
				continue
			}
			for n := range len(tasks) + 1 { // of n tasks
				part := make([][]float64, n)
				for i := range part {
					part[i] = dots[i][:n]
				}
				state := multitask.State{Step: 3, Epoch: 2, Rand: rand.New(rand.NewPCG(1, 1))}
				factors := w.Combine(state, tasks[:n], part)
				if l := newLearned(w.Learned); l != nil {
					factors = append(factors, l.differentiate(losses[:n]))
				}
				if slices.ContainsFunc(factors, isNotFinite) {
					t.Errorf("%s, gradients of %d tasks, %s: factors %v", weighting, n, name, factors)
				}
			}
		}
	}
}

// A gradient that is NaN is not left out like one that is zero: the update must not be made without its task.
func TestAGradientThatIsNoNumberMakesTheFactorsNoNumbers(t *testing.T) {
	tasks, nan := []string{"topic", "tags"}, math.NaN()
	m, _ := threeGroups(t, "none", 4)
	for _, weighting := range []string{"cagrad", "gradnorm", "pcgrad"} {
		w := registered(weightings.Registry(), weighting, "", weightings.EnvOf(m, 1))
		state := multitask.State{Rand: rand.New(rand.NewPCG(1, 1))}
		factors := w.Combine(state, tasks, [][]float64{{1, nan}, {nan, nan}})
		if factors[1] == 0 {
			t.Errorf("%s: factors %v", weighting, factors)
		}
	}
}

func isNotFinite(v float64) bool { return !floats.IsFinite(v) }
