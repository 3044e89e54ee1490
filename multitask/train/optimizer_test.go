package train

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/updates"
)

// A step reports the rate of an optimizer that computes it, and learns by it, whatever the plan's rate.
func TestAComputedRateIsReported(t *testing.T) {
	ends := map[float64]map[string][]float32{}
	for _, rate := range []float64{1e-3, 5} {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.Rate, plan.Optimizer = rate, adafactor()
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		events, end := toEnd(t, training)
		for _, event := range events {
			if s, ok := event.(Step); ok && s.Rate != min(0.01, 1/math.Sqrt(float64(s.Number))) {
				t.Errorf("step %d has the rate %v", s.Number, s.Rate)
			}
		}
		ends[rate] = end
	}
	if !reflect.DeepEqual(ends[1e-3], ends[5]) {
		t.Error("the plan's rate has an effect")
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	env := updates.ScheduleEnv{Rate: 1e-4}
	for _, c := range []struct{ name, options, want string }{
		{"sgd", "{nesterov: true, momentum: 0}", "want a momentum above 0"},
		{"sgd", "{nesterov: true, dampening: 0.1}", "not defined with dampening"},
		{"adafactor", "warmup_init: true", "want relative_step: true"},
		{"polynomial", "lr_end: 1e-4", "want a rate below learning_rate, 0.0001, have 0.0001"},
	} {
		var err error
		if c.name == "polynomial" {
			choice, chosen := updates.Schedules().FromString(c.name, c.options)
			if chosen != nil {
				t.Fatal(chosen)
			}
			_, err = choice.Build(env)
		} else {
			choice, chosen := updates.Optimizers().FromString(c.name, c.options)
			if chosen != nil {
				t.Fatal(chosen)
			}
			_, err = choice.Build(struct{}{})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.name, c.options, err, c.want)
		}
	}
}

// The state that a run counts before training is the one that a snapshot has.
func TestOptimizerStateIsCounted(t *testing.T) {
	for _, optimizer := range []updates.Optimizer{
		{}, updates.Of("sgd", updates.SGD{}), updates.Of("sgd", updates.SGD{Momentum: 0.9}), adafactor(),
	} {
		m, data := threeGroups(t, "1", 10)
		plan := smallPlan()
		plan.Optimizer = optimizer
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		toEnd(t, training)
		values := 0
		for _, p := range mustSnapshot(t, training).Kinds[0].Params {
			for _, slot := range p.Slots {
				values += len(slot.Values)
			}
		}
		if want := plan.Memory(m, 0).Optimizer; want != 4*int64(values) {
			t.Errorf("%v: %d bytes are counted, a snapshot has %d", optimizer.Part, want, 4*values)
		}
	}
}
