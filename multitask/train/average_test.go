package train

import (
	"context"
	"math"
	"strings"
	"testing"
)

// The model that is evaluated and kept has the running means of the parameters of all steps, which go on from their own
// values: the means follow from a training without them.
func TestTheModelHasTheRunningMeansOfItsParameters(t *testing.T) {
	const decay = 0.75
	start := func(average float64) *Training {
		m, data := threeGroups(t, "1", 10)
		plan := smallPlan()
		plan.Average, plan.EvaluateEvery = average, 4
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	plain, averaged := start(0), start(decay)
	var means map[string][]float64
	evaluations := 0
	for !averaged.Done() {
		advance(t, plain)
		_, evaluated := advance(t, averaged).(Evaluation)
		if !evaluated {
			means = follow(means, values(plain.model.Model), decay)
			continue
		}
		evaluations++
		nearMeans(t, values(averaged.model.Model), means)
	}
	if evaluations < 3 {
		t.Errorf("%d evaluations are too few", evaluations)
	}
	if err := averaged.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	nearMeans(t, values(averaged.model.Model), means)
}

// follow updates means by the definition.
func follow(means map[string][]float64, values map[string][]float32, decay float64) map[string][]float64 {
	first := means == nil
	if first {
		means = map[string][]float64{}
	}
	for name, v := range values {
		if first {
			means[name] = make([]float64, len(v))
		}
		for i, x := range v {
			if first {
				means[name][i] = float64(x)
			} else {
				means[name][i] = decay*means[name][i] + (1-decay)*float64(x)
			}
		}
	}
	return means
}

func nearMeans(t *testing.T, got map[string][]float32, want map[string][]float64) {
	t.Helper()
	for name, v := range got {
		for i, x := range v {
			if !(math.Abs(float64(x)-want[name][i]) <= 1e-6) {
				t.Fatalf("%s is %v at %d, want %v", name, x, i, want[name][i])
			}
		}
	}
}

func TestRatesThatFitNoTraining(t *testing.T) {
	for _, c := range []struct {
		change func(p *Plan)
		want   string
	}{
		{func(p *Plan) {}, ""},
		{func(p *Plan) { p.Average = 0.9 }, ""},
		{func(p *Plan) { p.Average = 0.999 },
			"ema: 0.999 averages over about 1000 steps, the training has 16"},
		{func(p *Plan) { p.WarmupSteps = 32 },
			"the learning rate rises over 32 steps, the training has 16: it reaches 0.0015"},
		{func(p *Plan) { p.WarmupSteps, p.Optimizer = 32, adafactor() }, ""},
		{func(p *Plan) { p.Average, p.MaxSteps = 0.9999, 3000 }, "want a smaller number, such as 0.9967"},
	} {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.MaxSteps = 16
		c.change(&plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		warnings := training.Warnings()
		if len(warnings) > 1 || (len(warnings) == 1) != (c.want != "") ||
			c.want != "" && !strings.Contains(warnings[0].Text, c.want) {
			t.Errorf("warnings %q, want %q", warnings, c.want)
		}
		if again := training.Warnings(); len(again) > 0 {
			t.Errorf("warnings %q come again", again)
		}
	}
}
