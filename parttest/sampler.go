package parttest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// Sampler checks the sampler registered as name, made with options written as YAML, on three groups of tasks: first,
// second and third; the first group has the tasks first and beside.
func Sampler(t *testing.T, name, options string) {
	t.Helper()
	choice, err := multitask.Samplers().FromString(name, options)
	if err != nil {
		t.Fatalf("sampler %q with options %q: %v", name, options, err)
	}
	build := func(t *testing.T) multitask.Sampler {
		s, err := choice.Build(multitask.SamplerEnv{Groups: groupNames, Tasks: groupTasks})
		if err != nil {
			t.Fatalf("sampler %q with options %q: %v", name, options, err)
		}
		return s
	}
	const turns = 400

	t.Run("as many different groups are named as Groups returns", func(t *testing.T) {
		c := newCourse(build(t))
		for turn := range turns {
			c.checkGroups(t, turn, c.turn())
		}
	})
	t.Run("no group is left out", func(t *testing.T) {
		drawn := map[int]int{}
		for c := newCourse(build(t)); c.used < turns; {
			for _, g := range c.turn() {
				drawn[g]++
			}
		}
		if len(drawn) < len(groupNames) {
			t.Errorf("%d batches are of groups %v; want all %d", turns, drawn, len(groupNames))
		}
	})
	t.Run("the same seed gives the same groups", func(t *testing.T) {
		if a, b := newCourse(build(t)).turns(turns), newCourse(build(t)).turns(turns); !reflect.DeepEqual(a, b) {
			t.Error("two samplers of one seed differ")
		}
	})
	t.Run("it goes on from its state", func(t *testing.T) {
		for _, done := range []int{0, 1, 30, 57} {
			c := newCourse(build(t))
			c.turns(done)
			again := c.resumed(t, build(t))
			if !reflect.DeepEqual(c.turns(turns), again.turns(turns)) {
				t.Errorf("after %d turns a sampler with its state differs", done)
			}
		}
	})
	t.Run("its probabilities are those of its groups", func(t *testing.T) { checkProbabilities(t, build(t)) })
}

var (
	groupNames = []string{"first", "second", "third"}
	groupTasks = [][]string{{"first", "beside"}, {"second"}, {"third"}}
)

// course is a training in which a sampler chooses groups, without a model.
type course struct {
	sampler multitask.Sampler
	state   multitask.State
	stream  *rand.PCG
	used    int // batches
}

func newCourse(s multitask.Sampler) *course {
	batches := []int{12, 5, 3}
	return &course{sampler: s, stream: rand.NewPCG(1, 1), state: multitask.State{
		Steps: 400, Epochs: 20, Examples: []int{95, 40, 17}, Batches: batches, Left: slices.Clone(batches), Last: -1,
	}}
}

// turn chooses the next groups. The sampler receives losses after each step, and an evaluation after ten steps.
func (c *course) turn() []int {
	if epoch := c.used / 20; epoch > c.state.Epoch {
		c.state.Epoch, c.state.Left = epoch, slices.Clone(c.state.Batches)
	}
	c.state.Rand = rand.New(c.stream)
	chosen := c.sampler.Next(c.state)
	var losses []multitask.Loss
	for _, g := range chosen {
		if g < 0 || g >= len(groupNames) {
			continue // a mistake that another check finds
		}
		c.state.Left[g]--
		c.state.Last = g
		c.used++
		losses = append(losses, multitask.Loss{
			Task: groupNames[g], Head: groupNames[g], Weight: 1, Factor: 1, Sum: 4 / float64(1+c.used), Units: 2,
		})
	}
	if o, ok := c.sampler.(multitask.LossObserver); ok {
		o.Observe(c.state, losses)
	}
	c.state.Step++
	if o, ok := c.sampler.(multitask.EvaluationObserver); ok && c.state.Step%10 == 0 {
		o.ObserveEvaluation(evaluation(c.state.Step))
	}
	return chosen
}

func (c *course) turns(n int) (all [][]int) {
	for range n {
		all = append(all, c.turn())
	}
	return all
}

// evaluation has figures that rise and fall.
func evaluation(step int) multitask.Evaluation {
	e := multitask.Evaluation{Step: step}
	for g, names := range groupTasks {
		var group multitask.GroupMetrics
		for i, name := range names {
			v := 0.5 + 0.4*math.Sin(float64(step/10*(g+2)+i))
			head := multitask.HeadMetrics{Head: name, Metrics: []tasks.Metric{{Name: "accuracy", Value: v}}}
			group.Tasks = append(group.Tasks, multitask.TaskMetrics{Task: name, Heads: []multitask.HeadMetrics{head}})
		}
		e.Groups = append(e.Groups, group)
	}
	return e
}

// resumed is the course with another sampler, which receives the state of c's.
func (c *course) resumed(t *testing.T, s multitask.Sampler) *course {
	t.Helper()
	moveState(t, c.sampler, s)
	stream := *c.stream
	again := &course{sampler: s, state: c.state, stream: &stream, used: c.used}
	again.state.Left = slices.Clone(c.state.Left)
	return again
}

// moveState sets the state of a part to that of another one.
func moveState(t *testing.T, from, to any) {
	t.Helper()
	stateful, ok := from.(multitask.Stateful)
	if !ok {
		return
	}
	state, err := stateful.MarshalBinary()
	if err != nil {
		t.Fatalf("MarshalBinary: %v", err)
	}
	if err := to.(multitask.Stateful).UnmarshalBinary(state); err != nil {
		t.Fatalf("UnmarshalBinary: %v", err)
	}
}

func (c *course) checkGroups(t *testing.T, turn int, chosen []int) {
	t.Helper()
	want := 1
	if m, ok := c.sampler.(multitask.MultiSampler); ok {
		want = m.Groups()
	}
	different := len(slices.Compact(slices.Sorted(slices.Values(chosen))))
	if len(chosen) != want || different != want || slices.Min(chosen) < 0 || slices.Max(chosen) >= len(groupNames) {
		t.Fatalf("turn %d names groups %v; want %d different ones of %d", turn+1, chosen, want, len(groupNames))
	}
}

// checkProbabilities compares the first group of 20,000 draws with the probabilities of a ProbabilitySampler.
func checkProbabilities(t *testing.T, s multitask.Sampler) {
	of, ok := s.(multitask.ProbabilitySampler)
	if !ok {
		t.Skip("it is no multitask.ProbabilitySampler")
	}
	c := newCourse(s)
	c.turns(25)
	state := c.state
	p, sum := of.Probabilities(state), 0.0
	if len(p) != len(groupNames) {
		t.Fatalf("%d probabilities of %d groups", len(p), len(groupNames))
	}
	for g, group := range p {
		sum += group.Value
		if group.Group != groupNames[g] || !(group.Value >= 0) || len(group.Terms) == 0 {
			t.Errorf("group %d, %q: %+v; want its name, a probability and the terms of it", g, groupNames[g], group)
		}
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		t.Errorf("the probabilities sum to %v", sum)
	}

	const draws = 20_000
	counts, square := make([]float64, len(p)), 0.0
	for range draws {
		counts[s.Next(state)[0]]++
	}
	for g, n := range counts {
		want := draws * p[g].Value
		square += (n - want) * (n - want) / max(want, 1e-9)
	}
	const critical = 18.42 // chi-square with 2 degrees of freedom, p = 0.0001
	if !(square <= critical) {
		t.Errorf("%v draws of groups with the probabilities %v: chi-square %.1f, want at most %v",
			counts, p, square, critical)
	}
}
