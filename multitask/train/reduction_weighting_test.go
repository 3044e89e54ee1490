package train

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

// byLoss weighs each loss by its mean.
func byLoss(_ multitask.State, losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Mean()
	}
	return factors
}

func TestGradientsOfTasksWithLabelledUnitsAreCombined(t *testing.T) {
	m := smallModel(t, "none", 0)
	plan := smallPlan()
	var combined []string
	plan.Weighting = pcgrad()
	plan.Weighting.Combine = func(s multitask.State, tasks []string, dots [][]float64) []float64 {
		combined = append(combined, tasks...)
		return pcgrad().Combine(s, tasks, dots)
	}
	examples := smallData(m, 4)[0].Train
	for _, e := range examples {
		e.Targets[1] = nil // of tags
	}
	report, err := stepping(t, m, plan, 1).Update([]Batch{{0, examples}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"topic"}; !slices.Equal(combined, want) {
		t.Errorf("gradients of tasks %q are combined, want %q", combined, want)
	}
	if report.Epoch != 0 {
		t.Errorf("epoch %v of chosen batches, want 0", report.Epoch)
	}
}

// weighted sets a plan's weighting to a registered one.
func weighted(name, options string) func(m *multitask.Model, p *Plan) {
	return func(m *multitask.Model, p *Plan) {
		p.Weighting = registered(weightings.Registry(), name, options, weightings.EnvOf(m, 1))
	}
}

// sharded is a training whose batches are cut into shards.
type sharded struct {
	name   string
	groups [2]int // of the batches of a step
	change func(m *multitask.Model, p *Plan)
}

func shardedTrainings() []sharded {
	return []sharded{
		{"batches of one group", [2]int{0, 0}, func(*multitask.Model, *Plan) {}},
		{"batches of two groups", [2]int{0, 1}, func(*multitask.Model, *Plan) {}},
		{"running means", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) { p.Average = 0.9 }},
		{"sgd", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) {
			p.Optimizer = updates.Of("sgd", updates.SGD{Momentum: 0.9})
		}},
		{"adafactor", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) {
			p.Optimizer = registered(updates.Optimizers(), "adafactor", "", struct{}{})
		}},
		{"learned weighting", [2]int{0, 1}, func(m *multitask.Model, p *Plan) { p.Weighting = uncertainty(m) }},
		{"factors by losses", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) {
			p.Weighting = (&scripted{factor: 2}).weighting()
		}},
		{"losses as factors", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) { p.Weighting.WeighLosses = byLoss }},
		{"losses of one group as factors", [2]int{0, 0}, func(_ *multitask.Model,
			p *Plan) {
			p.Weighting.WeighLosses = byLoss
		}},
		{"gradients combined", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) { p.Weighting = pcgrad() }},
		{"dwa", [2]int{0, 1}, weighted("dwa", "every: 1")},
		{"rlw", [2]int{0, 1}, weighted("rlw", "")},
		{"gradnorm", [2]int{0, 1}, weighted("gradnorm", "initial_steps: 1")},
		{"cagrad", [2]int{0, 1}, weighted("cagrad", "")},
		{"famo", [2]int{0, 1}, weighted("famo", "")},
	}
}
