package train

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

func TestOptionsOfWeightings(t *testing.T) {
	for _, c := range []struct{ name, options, wrong string }{
		{"dwa", "temperature: 0", "temperature: want a number above 0, have 0"},
		{"dwa", "every: -1", "every: want a whole number of at least 0, have -1"},
		{"rlw", "dist: normal", `weighting "rlw" has no option "dist"`},
		{"gradnorm", "alpha: -0.1", "alpha: want a number of at least 0, have -0.1"},
		{"gradnorm", "learning_rate: 0", "learning_rate: want a number above 0, have 0"},
		{"gradnorm", "initial_steps: -1", "initial_steps: want a whole number of at least 0, have -1"},
		{"cagrad", "c: -1", "c: want a number of at least 0, have -1"},
		{"famo", "gamma: -1", "gamma: want a number of at least 0, have -1"},
		{"famo", "learning_rate: 0", "learning_rate: want a number above 0, have 0"},
		{"uncertainty", "learning_rate: -1", "learning_rate: want a number above 0, have -1"},
	} {
		if _, err := weightings.Registry().FromString(c.name,
			c.options); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s {%s}: %v, want %s", c.name, c.options, err, c.wrong)
		}
	}
}

// Weightings that compare the losses or the gradients of a step's tasks need all of them in a step.
func TestGroupsBesideAWeighting(t *testing.T) {
	m := smallModel(t, "none", 0)
	for _, name := range weightings.Registry().Names() {
		w := registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1))
		compares := map[string]bool{"pcgrad": true, "gradnorm": true, "cagrad": true, "famo": true}[name]
		env := samplers.EnvOf(m, w.ComparesTasks())
		want := [][]string{{"topic", "tags"}, {"mood"}}
		if env.All != compares || !reflect.DeepEqual(env.Tasks, want) {
			t.Errorf("%s: all groups in a step: %v, of tasks %q; want %v, %q", name, env.All, env.Tasks, compares, want)
		}
	}
}

func TestGradientsByTaskTakeMemory(t *testing.T) {
	m := smallModel(t, "none", 0)
	bytes := int64(0)
	for _, w := range m.SharedParams() {
		bytes += 4 * int64(len(w.Data))
	}
	for _, name := range weightings.Registry().Names() {
		plan := smallPlan()
		plan.Weighting = registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1))
		want := int64(0)
		if plan.Weighting.Combine != nil {
			want = 3 * bytes // of three tasks
		}
		if got := taskGradients(plan, m); got != want {
			t.Errorf("%s: gradients by task take %d bytes, want %d", name, got, want)
		}
	}
}

// taskGradients returns the memory of gradients that a plan's weighting adds.
func taskGradients(plan Plan, m *multitask.Model) int64 {
	with := plan.Memory(m, 0).Gradients
	plan.Weighting = weightings.Weighting{}
	return with - plan.Memory(m, 0).Gradients
}

// A state of other heads, or one that is no JSON, is refused and changes nothing.
func TestStatesOfWeightingsAreChecked(t *testing.T) {
	m := smallModel(t, "none", 0)
	for _, name := range weightings.Registry().Names() {
		stateful := registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1)).State
		if stateful == nil {
			continue
		}
		before, err := stateful.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		fewer := weightings.Env{Heads: weightings.EnvOf(m, 1).Heads[:2], Params: nn.NewParams(1)}
		other, err := registered(weightings.Registry(), name, "", fewer).State.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"", "{", `"x"`, string(other)} {
			if err := stateful.UnmarshalBinary([]byte(state)); err == nil {
				t.Errorf("%s: state %q is accepted", name, state)
			}
		}
		if after, err := stateful.MarshalBinary(); err != nil || string(after) != string(before) {
			t.Errorf("%s: state %s after others are refused, %v; want %s", name, after, err, before)
		}
	}
}

// A task without a gradient of the shared parameters, such as one whose heads have weight 0, changes nothing for
// others.
func TestTasksWithoutAGradientDoNotCount(t *testing.T) {
	heads := []multitask.HeadName{{Task: "a", Head: "a"}, {Task: "b", Head: "b"}, {Task: "c", Head: "c"}}
	for _, name := range []string{"gradnorm", "cagrad"} {
		combine := func(tasks []string, dots [][]float64) []float64 {
			env := weightings.Env{Heads: heads, Params: nn.NewParams(1)}
			return registered(weightings.Registry(), name, "", env).Combine(multitask.State{}, tasks, dots)
		}
		two := combine([]string{"a", "c"}, [][]float64{{4, -1}, {-1, 9}})
		three := combine([]string{"a", "b", "c"}, [][]float64{{4, 0, -1}, {0, 0, 0}, {-1, 0, 9}})
		if three[0] != two[0] || three[2] != two[1] || three[1] != 0 {
			t.Errorf("%s: factors %v, and %v without the task in the middle", name, three, two)
		}
		if none := combine([]string{"a"}, [][]float64{{0}}); len(none) != 1 || none[0] != 0 {
			t.Errorf("%s: factors %v of a gradient of zeros", name, none)
		}
	}
}

// stateOf returns a state as a snapshot has it.
func stateOf(t *testing.T, s multitask.Stateful) string {
	t.Helper()
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Losses of 0, or below by rounding, leave all factors finite.
func TestLossesOfZero(t *testing.T) {
	heads := []multitask.HeadName{{Task: "a", Head: "a"}, {Task: "b", Head: "b"}}
	losses := []multitask.Loss{
		{Task: "a", Head: "a", Weight: 1, Units: 2}, {Task: "b", Head: "b", Weight: 1, Units: 2, Sum: -1e-9},
	}
	env := weightings.Env{Heads: heads, Params: nn.NewParams(1)}
	famo := registered(weightings.Registry(), "famo", "", env)
	famo.Review(multitask.State{}, losses, losses)
	if f := famo.Factors(multitask.State{}, losses); f[0] != 0.5 || f[1] != 0.5 {
		t.Errorf("famo: factors %v of two losses of 0, want 0.5", f)
	}
	diverged := []multitask.Loss{losses[0], losses[1]}
	diverged[0].Sum = math.NaN()
	before := stateOf(t, famo.State)
	if famo.Review(multitask.State{}, losses, diverged); stateOf(t, famo.State) != before {
		t.Errorf("famo learns from a loss that is not a number")
	}

	gradnorm := registered(weightings.Registry(), "gradnorm", "initial_steps: 1", env)
	gradnorm.Observe(multitask.State{}, losses)
	gradnorm.Combine(multitask.State{}, []string{"a", "b"}, [][]float64{{1, 0}, {0, 4}})
	into := nn.NewGradients(gradnorm.Learned.Params)
	gradnorm.Learned.Differentiate(losses, into)
	for i, want := range []float32{-1.5, 1.5} { // ∓1 and ±2 times w of 1, less half of their sum of 1
		if got := into.Of(gradnorm.Learned.Params[i])[0]; got != want {
			t.Errorf("gradnorm: gradient %v of task %d, want %v", got, i, want)
		}
	}

	d := registered(weightings.Registry(), "dwa", "every: 1", env)
	for step := range 4 {
		if f := d.Weigh(multitask.State{Step: step}, losses); f[0] != 1 || f[1] != 1 {
			t.Errorf("dwa: factors %v of losses of 0, want 1", f)
		}
		d.Observe(multitask.State{Step: step}, losses)
	}
}

// With accumulation a step's losses and gradients are those of all its batches together, for each weighting.
func TestWeightingsWithAccumulation(t *testing.T) {
	for _, name := range weightings.Registry().Names() {
		trained := func(split bool) (last Step, end map[string][]float32) {
			m := smallModel(t, "none", 0)
			plan := smallPlan()
			plan.Weighting = registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1))
			if name == "gradnorm" {
				plan.Weighting = registered(weightings.Registry(), name, "initial_steps: 1", weightings.EnvOf(m, 1))
			}
			training, data := stepping(t, m, plan, 6), smallData(m, 48)
			for n := range 6 {
				first, second := data[0].Train[8*n:8*n+8], data[1].Train[8*n:8*n+8]
				batches := []Batch{{0, first}, {1, second}}
				if split {
					batches = []Batch{{0, first[:3]}, {1, second[:5]}, {0, first[3:]}, {1, second[5:]}}
				}
				var err error
				if last, err = training.Update(batches); err != nil {
					t.Fatal(err)
				}
			}
			return last, values(m)
		}
		want, wantEnd := trained(false)
		got, gotEnd := trained(true)
		if !(math.Abs(got.Loss-want.Loss) <= 1e-5) || !(math.Abs(got.GradientNorm-want.GradientNorm) <= 1e-5) {
			t.Errorf("%s: loss %v and gradient %v of divided batches, want %v and %v",
				name, got.Loss, got.GradientNorm, want.Loss, want.GradientNorm)
		}
		delete(wantEnd, "fusion.score.bias") // softmax ignores it: its gradient is the rounding of zeros
		for param, w := range wantEnd {
			for i, v := range w {
				if !(math.Abs(float64(gotEnd[param][i]-v)) <= 1e-5) {
					t.Fatalf("%s: %s[%d] is %v with divided batches, want %v", name, param, i, gotEnd[param][i], v)
				}
			}
		}
	}
}
