package parttest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Weighting checks the weighting registered as name, made with options written as YAML, on the losses of three tasks,
// one of which has two heads. Some steps have some of the tasks only.
func Weighting(t *testing.T, name, options string) {
	t.Helper()
	choice, err := multitask.Weightings().FromString(name, options)
	if err != nil {
		t.Fatalf("weighting %q with options %q: %v", name, options, err)
	}
	build := func(t *testing.T) *weighing {
		env := multitask.WeightingEnv{Params: nn.NewParams(1).In("weighting")}
		for _, l := range lossesOf(0) {
			env.Heads = append(env.Heads, l.HeadName())
		}
		w, err := choice.Build(env)
		if err != nil {
			t.Fatalf("weighting %q with options %q: %v", name, options, err)
		}
		return newWeighing(w)
	}
	const steps = 60

	t.Run("each loss has a finite factor", func(t *testing.T) { checkFactors(t, build(t), steps) })
	t.Run("a head of weight 0 has factor 0", func(t *testing.T) { checkWeightZero(t, build(t), steps) })
	t.Run("the same seed gives the same factors", func(t *testing.T) {
		if !reflect.DeepEqual(build(t).steps(steps), build(t).steps(steps)) {
			t.Error("two weightings of one seed differ")
		}
	})
	t.Run("it goes on from its state", func(t *testing.T) {
		for _, done := range []int{0, 1, 13, 34} {
			w := build(t)
			w.steps(done)
			again := build(t)
			again.resume(t, w)
			if !reflect.DeepEqual(w.steps(steps), again.steps(steps)) {
				t.Errorf("after %d steps a weighting with its state and parameters differs", done)
			}
		}
	})
}

func checkFactors(t *testing.T, w *weighing, steps int) {
	for n := range steps {
		factors := w.step()
		want := len(lossesOf(n))
		if _, combines := w.Weighting.(multitask.GradientWeighting); combines {
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
	w.steps(steps)
	losses := lossesOf(0)
	losses[1].Weight = 0
	if f := w.factors(losses); f[1] != 0 || f[0] == 0 && f[2] == 0 {
		t.Errorf("factors %v of heads of which the second has weight 0", f)
	}
}

// weighing is a training whose losses a weighting weighs, without a model.
type weighing struct {
	multitask.Weighting
	state  multitask.State
	stream *rand.PCG
	store  *nn.HostStore // of a LearnedWeighting; nil: it is none
}

func newWeighing(of multitask.Weighting) *weighing {
	w := &weighing{Weighting: of, stream: rand.NewPCG(1, 2), state: multitask.State{Steps: 200, Epochs: 20}}
	if learned, ok := of.(multitask.LearnedWeighting); ok {
		w.store = nn.NewHostStore(learned.Params(), nn.NewAdamW(0))
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

// taskNames returns the tasks of losses.
func taskNames(losses []multitask.Loss) []string {
	var names []string
	for _, l := range losses {
		names = append(names, l.Task)
	}
	return slices.Compact(names)
}

// factors returns the factors of losses.
func (w *weighing) factors(losses []multitask.Loss) []float64 {
	w.state.Rand = rand.New(w.stream)
	if byLosses, ok := w.Weighting.(multitask.LossWeighting); ok {
		return byLosses.WeighLosses(w.state, losses)
	}
	return w.Weigh(w.state, losses)
}

// step runs one step, and returns the factors of its losses and of its tasks' gradients.
func (w *weighing) step() []float64 {
	w.state.Epoch = w.state.Step / 10
	losses := lossesOf(w.state.Step)
	factors := slices.Clone(w.factors(losses))
	for i := range losses {
		losses[i].Factor = factors[i]
	}
	if combines, ok := w.Weighting.(multitask.GradientWeighting); ok {
		names := taskNames(losses)
		factors = append(factors, combines.Combine(w.state, names, dotsOf(w.state.Step, len(names)))...)
	}
	if learned, ok := w.Weighting.(multitask.LearnedWeighting); ok {
		w.store.Zero()
		learned.Differentiate(losses, w.store.Gradients())
		_, err := w.store.SumSquares()
		if err == nil {
			err = w.store.Update(1, learned.Rate())
		}
		if err != nil {
			panic("parttest: " + err.Error()) // a HostStore of one process has none
		}
	}
	if o, ok := w.Weighting.(multitask.LossObserver); ok {
		o.Observe(w.state, losses)
	}
	if r, ok := w.Weighting.(multitask.LossReviewer); ok {
		after := slices.Clone(losses)
		for i := range after {
			after[i].Sum *= 0.9 + 0.03*float64(i)
		}
		r.Review(w.state, losses, after)
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

func (w *weighing) steps(n int) (all [][]float64) {
	for range n {
		all = append(all, w.step())
	}
	return all
}

// resume sets w to the state of another training: of its weighting, of the parameters of that, and of its stream.
func (w *weighing) resume(t *testing.T, from *weighing) {
	t.Helper()
	moveState(t, from.Weighting, w.Weighting)
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
