package parttest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/tasks"
)

// Sampler checks the sampler registered as name, made with options written as YAML, on three groups of tasks: first,
// second and third; the first group has the tasks first and beside.
func Sampler(t *testing.T, name, options string) {
	t.Helper()
	build := func(t *testing.T) *course {
		env := samplers.Env{Groups: groupNames, Tasks: groupTasks}
		return newCourse(built(t, samplers.Registry(), name, options, env))
	}
	const turns = 400

	t.Run("as many different groups are named as Groups returns",
		func(t *testing.T) { build(t).checkGroups(t, turns) })
	t.Run("in a rehearsal too", func(t *testing.T) { build(t).rehearsing().checkGroups(t, turns) })
	t.Run("no group is left out", func(t *testing.T) {
		drawn := map[int]int{}
		for c := build(t); c.used < turns; {
			for _, g := range c.step() {
				drawn[g]++
			}
		}
		if len(drawn) < len(groupNames) {
			t.Errorf("%d batches are of groups %v; want all %d", turns, drawn, len(groupNames))
		}
	})
	checkRuns(t, build, turns, []int{0, 1, 30, 57})
	t.Run("its probabilities are those of its groups", func(t *testing.T) { checkProbabilities(t, build(t)) })
}

// simulation is a training without a model, of type S.
type simulation[S, R any] interface {
	step() R
	resume(t *testing.T, from S) // sets the state to that of another one
}

// run returns the results of n steps.
func run[R any](s interface{ step() R }, n int) []R {
	all := make([]R, n)
	for i := range all {
		all[i] = s.step()
	}
	return all
}

// checkRuns checks that simulations of one seed are the same, and go on from the state after so many steps.
func checkRuns[S simulation[S, R], R any](t *testing.T, build func(t *testing.T) S, steps int, after []int) {
	t.Run("the same seed gives the same", func(t *testing.T) {
		if !reflect.DeepEqual(run(build(t), steps), run(build(t), steps)) {
			t.Error("two of one seed differ")
		}
	})
	t.Run("it goes on from its state", func(t *testing.T) {
		for _, done := range after {
			s, again := build(t), build(t)
			run(s, done)
			again.resume(t, s)
			if !reflect.DeepEqual(run(s, steps), run(again, steps)) {
				t.Errorf("after %d steps another with its state and parameters differs", done)
			}
		}
	})
}

var (
	groupNames = []string{"first", "second", "third"}
	groupTasks = [][]string{{"first", "beside"}, {"second"}, {"third"}}
)

// course is a training in which a sampler chooses groups, without a model.
type course struct {
	sampler samplers.Sampler
	names   []string // of the groups
	state   multitask.State
	stream  *rand.PCG
	used    int // batches
}

func newCourse(s samplers.Sampler) *course {
	batches := []int{12, 5, 3}
	return &course{sampler: s, names: groupNames, stream: rand.NewPCG(1, 1), state: multitask.State{
		Steps: 400, Epochs: 20, Examples: []int{95, 40, 17}, Batches: batches, Left: slices.Clone(batches), Last: -1,
	}}
}

// rehearsing adds a fourth group, which is rehearsed beside those of the sampler.
func (c *course) rehearsing() *course {
	c.names = append(slices.Clone(c.names), "old")
	c.sampler = samplers.NewRehearsal(c.sampler, c.names, []bool{3: true}, 0.4)
	s := &c.state
	s.Examples, s.Batches, s.Left = append(s.Examples, 60), append(s.Batches, 8), append(s.Left, 8)
	return c
}

// step chooses the next groups. The sampler receives losses after each step, and an evaluation after ten steps.
func (c *course) step() []int {
	if epoch := c.used / 20; epoch > c.state.Epoch {
		c.state.Epoch, c.state.Left = epoch, slices.Clone(c.state.Batches)
	}
	c.state.Rand = rand.New(c.stream)
	chosen := c.sampler.Next(c.state)
	var losses []multitask.Loss
	for _, g := range chosen {
		if g < 0 || g >= len(c.names) {
			continue // a mistake that another check finds
		}
		c.state.Left[g]--
		c.state.Last = g
		c.used++
		losses = append(losses, multitask.Loss{
			Task: c.names[g], Head: c.names[g], Weight: 1, Factor: 1, Sum: 4 / float64(1+c.used), Units: 2,
		})
	}
	if c.sampler.Observe != nil {
		c.sampler.Observe(c.state, losses)
	}
	c.state.Step++
	if c.sampler.ObserveEvaluation != nil && c.state.Step%10 == 0 {
		c.sampler.ObserveEvaluation(evaluation(c.state.Step))
	}
	return chosen
}

// evaluation has figures that rise and fall.
func evaluation(step int) (groups []multitask.GroupMetrics) {
	for g, names := range groupTasks {
		var group multitask.GroupMetrics
		for i, name := range names {
			v := 0.5 + 0.4*math.Sin(float64(step/10*(g+2)+i))
			head := multitask.HeadMetrics{Head: name, Metrics: []tasks.Metric{{Name: "accuracy", Value: v}}}
			group.Tasks = append(group.Tasks, multitask.TaskMetrics{Task: name, Heads: []multitask.HeadMetrics{head}})
		}
		groups = append(groups, group)
	}
	return groups
}

func (c *course) resume(t *testing.T, from *course) {
	t.Helper()
	moveState(t, from.sampler.State, c.sampler.State)
	stream := *from.stream
	c.state, c.stream, c.used = from.state, &stream, from.used
	c.state.Left = slices.Clone(from.state.Left)
}

// moveState sets the state of a part to that of another one.
func moveState(t *testing.T, from, to multitask.Stateful) {
	t.Helper()
	if from == nil {
		return
	}
	state, err := from.MarshalBinary()
	if err != nil {
		t.Fatalf("MarshalBinary: %v", err)
	}
	if err := to.UnmarshalBinary(state); err != nil {
		t.Fatalf("UnmarshalBinary: %v", err)
	}
}

func (c *course) checkGroups(t *testing.T, turns int) {
	want := c.sampler.AtOnce()
	for turn, chosen := range run(c, turns) {
		different := len(slices.Compact(slices.Sorted(slices.Values(chosen))))
		if len(chosen) != want || different != want || slices.Min(chosen) < 0 || slices.Max(chosen) >= len(c.names) {
			t.Fatalf("turn %d names groups %v; want %d different ones of %d", turn+1, chosen, want, len(c.names))
		}
	}
}

// checkProbabilities compares the first group of 20,000 draws with its probabilities.
func checkProbabilities(t *testing.T, c *course) {
	s := c.sampler
	if s.Probabilities == nil {
		t.Skip("it has no probabilities")
	}
	run(c, 25)
	state := c.state
	p, sum := s.Probabilities(state), 0.0
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

// Weighting checks the weighting registered as name, made with options written as YAML, on the losses of three tasks,
// one of which has two heads. Some steps have some of the tasks only.
func Weighting(t *testing.T, name, options string) {
	t.Helper()
	build := func(t *testing.T) *weighing {
		env := weightings.Env{Params: nn.NewParams(1).In("weighting")}
		for _, l := range lossesOf(0) {
			env.Heads = append(env.Heads, l.HeadName())
		}
		return newWeighing(built(t, weightings.Registry(), name, options, env))
	}
	const steps = 60

	t.Run("each loss has a finite factor", func(t *testing.T) { checkFactors(t, build(t), steps) })
	t.Run("a head of weight 0 has factor 0", func(t *testing.T) { checkWeightZero(t, build(t), steps) })
	checkRuns(t, build, steps, []int{0, 1, 13, 34})
}

func checkFactors(t *testing.T, w *weighing, steps int) {
	for n, factors := range run(w, steps) {
		want := len(lossesOf(n))
		if w.Combine != nil {
			want += len(taskNames(lossesOf(n)))
		}
		if len(factors) != want {
			t.Fatalf("step %d has %d factors, want %d", n+1, len(factors), want)
		}
		for _, f := range factors {
			if !floats.IsFinite(f) {
				t.Fatalf("step %d has factors %v", n+1, factors)
			}
		}
	}
}

func checkWeightZero(t *testing.T, w *weighing, steps int) {
	run(w, steps)
	losses := lossesOf(0)
	losses[1].Weight = 0
	if f := w.factors(losses); f[1] != 0 || f[0] == 0 && f[2] == 0 {
		t.Errorf("factors %v of heads of which the second has weight 0", f)
	}
}

// weighing is a training whose losses a weighting weighs, without a model.
type weighing struct {
	weightings.Weighting
	state  multitask.State
	stream *rand.PCG
	store  *nn.HostStore // of what it learns; nil: nothing
}

func newWeighing(of weightings.Weighting) *weighing {
	w := &weighing{Weighting: of, stream: rand.NewPCG(1, 2), state: multitask.State{Steps: 200, Epochs: 20}}
	if of.Learned != nil {
		w.store = nn.NewHostStore(of.Learned.Params, nn.NewAdamW(0))
	}
	return w
}

// lossesOf returns the losses of a step, which fall from step to step. Each third step has the first task alone, each
// fifth no labels of its second head.
func lossesOf(step int) []multitask.Loss {
	fall := func(rate float64) float64 {
		return math.Exp(-rate*float64(step)) * (1.5 + 0.3*math.Sin(float64(7*step)))
	}
	losses := []multitask.Loss{
		{Task: "first", Head: "one", Weight: 1, Units: 4, Sum: 4 * fall(0.01)},
		{Task: "first", Head: "two", Weight: 0.5, Units: 9, Sum: 9 * fall(0.03)},
		{Task: "second", Head: "second", Weight: 2, Units: 3, Sum: 3 * fall(0.02)},
		{Task: "third", Head: "third", Weight: 1, Units: 8, Sum: 8 * fall(0.005)},
	}
	if step%3 == 2 {
		losses = losses[:2]
	}
	if step%5 == 4 {
		losses[1].Units, losses[1].Sum = 0, 0
	}
	return losses
}

func taskNames(losses []multitask.Loss) []string {
	var names []string
	for _, l := range losses {
		names = append(names, l.Task)
	}
	return slices.Compact(names)
}

func (w *weighing) factors(losses []multitask.Loss) []float64 {
	w.state.Rand = rand.New(w.stream)
	return w.Factors(w.state, losses)
}

// step runs one step, and returns the factors of its losses and of its tasks' gradients.
func (w *weighing) step() []float64 {
	w.state.Epoch = w.state.Step / 10
	losses := lossesOf(w.state.Step)
	factors := slices.Clone(w.factors(losses))
	for i := range losses {
		losses[i].Factor = factors[i]
	}
	if w.Combine != nil {
		names := taskNames(losses)
		factors = append(factors, w.Combine(w.state, names, dotsOf(w.state.Step, len(names)))...)
	}
	if learned := w.Learned; learned != nil {
		w.store.Zero()
		learned.Differentiate(losses, w.store.Gradients())
		_, err := w.store.SumSquares()
		if err == nil {
			err = w.store.Update(1, learned.Rate)
		}
		if err != nil {
			panic("parttest: " + err.Error()) // a HostStore of one process has none
		}
	}
	if w.Observe != nil {
		w.Observe(w.state, losses)
	}
	if w.Review != nil {
		after := slices.Clone(losses)
		for i := range after {
			after[i].Sum *= 0.9 + 0.03*float64(i)
		}
		w.Review(w.state, losses, after)
	}
	w.state.Step++
	return factors
}

// dotsOf returns the dot products of some gradients at random, which are the same in each call.
func dotsOf(step, n int) [][]float64 {
	r := rand.New(rand.NewPCG(3, uint64(step)))
	gradients, dots := make([][4]float64, n), make([][]float64, n)
	for i := range gradients {
		for k := range gradients[i] {
			gradients[i][k] = r.NormFloat64() * float64(1+i)
		}
	}
	for i := range dots {
		dots[i] = make([]float64, n)
		for j := range dots[i] {
			for k := range gradients[i] {
				dots[i][j] += gradients[i][k] * gradients[j][k]
			}
		}
	}
	return dots
}

// resume sets w to the state of another training: of its weighting, of the parameters of that, and of its stream.
func (w *weighing) resume(t *testing.T, from *weighing) {
	t.Helper()
	moveState(t, from.Weighting.State, w.Weighting.State)
	stream := *from.stream
	w.state, w.stream = from.state, &stream
	if w.store == nil {
		return
	}
	state, err := from.store.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.SetState(state); err != nil {
		t.Fatalf("parameters of the weighting: %v", err)
	}
}
