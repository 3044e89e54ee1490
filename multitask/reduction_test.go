package multitask

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// processes are trainings that sum numbers in one process.
type processes struct {
	n       int
	mu      sync.Mutex
	all     sync.Cond
	arrived int
	round   int
	sum     []float64 // of the round that goes on
	result  []float64 // of the last one
}

func newProcesses(n int) *processes {
	p := &processes{n: n}
	p.all.L = &p.mu
	return p
}

// add waits for all processes, and sets x to the sum of all that they add.
func (p *processes) add(x []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arrived == 0 {
		p.sum = make([]float64, len(x))
	}
	if len(x) != len(p.sum) {
		panic("processes that sum different things")
	}
	for i, v := range x {
		p.sum[i] += v
	}
	if p.arrived++; p.arrived == p.n {
		p.arrived, p.result = 0, p.sum
		p.round++
		p.all.Broadcast()
	} else {
		for round := p.round; round == p.round; {
			p.all.Wait()
		}
	}
	copy(x, p.result)
}

// summing is the Reducer of one of the processes. It records what it receives.
type summing struct {
	with  *processes
	rank  int
	ready []handed // since the last Wait
	steps [][]string
	wrong []string // parameters whose gradients changed after they were ready
}

type handed struct {
	w        *nn.Param
	gradient []float32
	then     []float32
}

func (s *summing) Rank() (rank, processes int) { return s.rank, s.with.n }

func (s *summing) Sum(values []float64) error { s.with.add(values); return nil }

func (s *summing) Ready(w *nn.Param, gradient []float32) {
	s.ready = append(s.ready, handed{w, gradient, slices.Clone(gradient)})
}

func (s *summing) Wait() error {
	var names []string
	for _, h := range s.ready {
		names = append(names, h.w.Name)
		if !slices.Equal(h.gradient, h.then) {
			s.wrong = append(s.wrong, h.w.Name)
		}
		x := make([]float64, len(h.gradient))
		for i, v := range h.gradient {
			x[i] = float64(v)
		}
		s.with.add(x)
		for i, v := range x {
			h.gradient[i] = float32(v)
		}
	}
	s.ready, s.steps = nil, append(s.steps, names)
	return nil
}

// afterBackward records how many gradients are ready when the encoder's backward pass ends.
type afterBackward struct {
	encoders.Trainable
	reducer *summing
	ready   []int
}

func (a *afterBackward) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	a.Trainable.Backward(p, at, into)
	a.ready = append(a.ready, len(a.reducer.ready))
}

// bilstmModel is smallModel with a bilstm encoder.
func bilstmModel(t *testing.T) *Model {
	params := nn.NewParams(3)
	m := smallModel(t, "none", 0)
	choice, err := encoders.Registry().FromString("bilstm", "{embedding: 6, layers: 2, hidden: 6}")
	if err != nil {
		t.Fatal(err)
	}
	env := encoders.Env{Vocabulary: smallVocabulary, DropoutSet: true, Params: params.In("encoder")}
	m.Encoder, err = choice.Build(env)
	if err != nil {
		t.Fatal(err)
	}
	m.Params = params
	m.Groups = m.Groups[1:]
	m.Groups[0].Tasks = nil
	return m
}

func TestGradientsAreReadyOnceInOneOrder(t *testing.T) {
	for name, model := range map[string]func(t *testing.T) (*Model, []Data){
		"transformer":   func(t *testing.T) (*Model, []Data) { return threeGroups(t, "none", 10) },
		"partly frozen": func(t *testing.T) (*Model, []Data) { return threeGroups(t, "1", 10) },
		"bilstm": func(t *testing.T) (*Model, []Data) {
			m := bilstmModel(t)
			m.Groups = nil
			addTaskOf(t, m, "mood", "sentiment")
			data := smallData(smallModel(t, "none", 0), 10)
			return m, data[1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, data := model(t)
			reducer := &summing{with: newProcesses(1)}
			encoder := &afterBackward{Trainable: m.Encoder.(encoders.Trainable), reducer: reducer}
			m.Encoder = encoder
			plan := smallPlan()
			plan.Accumulate, plan.Reducer, plan.NeverEvaluate = 2, reducer, true
			train(t, m, data, plan)

			// complete and in one order: heads and fusion, then the encoder
			var want []string
			for _, w := range m.Params.All() {
				if w.Learns() {
					want = append(want, w.Name)
				}
			}
			slices.Sort(want)
			for n, order := range reducer.steps {
				if !slices.Equal(order, reducer.steps[0]) || !slices.Equal(slices.Sorted(slices.Values(order)), want) {
					t.Fatalf("step %d: gradients of %q are ready, want %q in the order of the first step", n+1, order,
						want)
				}
			}
			ofEncoder := func(name string) bool { return isIn(m.Params.In("encoder"), &nn.Param{Name: name}) }
			first := slices.IndexFunc(reducer.steps[0], ofEncoder)
			for _, name := range reducer.steps[0][first:] {
				if !ofEncoder(name) {
					t.Errorf("the gradient of %s is ready after the encoder's", name)
				}
			}
			if len(reducer.wrong) > 0 {
				t.Errorf("gradients of %q changed after they were ready", reducer.wrong)
			}
			// of accumulated batches the last alone reports, and all is ready when its backward pass ends
			for i, n := range encoder.ready {
				if last := i%2 == 1 || i == len(encoder.ready)-1; last && n != len(want) || !last && n != 0 {
					t.Fatalf("after backward pass %d %d of %d gradients are ready", i+1, n, len(want))
				}
			}
		})
	}
}

// addTaskOf adds a group of a task with the small labels.
func addTaskOf(t *testing.T, m *Model, name, kind string) {
	task := smallTask(t, m, name, kind, 0)
	m.Groups = append(m.Groups, Group{Name: name, Tasks: []Task{task}})
}

func TestTwoProcessesTrainAsOneDoes(t *testing.T) {
	const steps = 4
	for _, c := range trainingsOfTwo() {
		t.Run(c.name, func(t *testing.T) {
			batches := func(m *Model, step int) []Batch {
				data := smallData(m, 32)
				for i := range data[0].Train { // unequal parts: texts without a label
					if i%3 == 0 {
						data[0].Train[i].Targets = []corpus.Target{nil, nil}
					}
				}
				var both []Batch
				for p, g := range c.groups {
					at := 8*step + 4*p
					both = append(both, Batch{g, data[g].Train[at : at+4]})
				}
				return both
			}
			start := func(reducer nn.Reducer) *Training {
				m := smallModel(t, "none", 0.1)
				plan := smallPlan()
				plan.Reducer = reducer
				c.change(m, &plan)
				return stepping(t, m, plan, steps)
			}
			whole, with := start(nil), newProcesses(2)
			halves := []*Training{start(&summing{with: with}), start(&summing{with: with, rank: 1})}
			for n := range steps {
				want, err := whole.Update(batches(whole.model.Model, n))
				if err != nil {
					t.Fatal(err)
				}
				var got [2]Step
				var errs [2]error
				var both sync.WaitGroup
				for p, half := range halves {
					both.Go(func() { got[p], errs[p] = half.Update(batches(half.model.Model, n)) })
				}
				both.Wait()
				for p, half := range halves {
					if errs[p] != nil {
						t.Fatal(errs[p])
					}
					compareReduced(t, n, half, whole, got[p], want)
				}
			}
		})
	}
}

// compareReduced compares a process's step with that of a training over all batches.
func compareReduced(t *testing.T, n int, half, whole *Training, got, want Step) {
	t.Helper()
	const bound = 1e-6
	if !(math.Abs(got.Loss-want.Loss) <= bound) || !(math.Abs(got.GradientNorm-want.GradientNorm) <= bound) {
		t.Errorf("step %d: loss %v and gradient %v, want %v and %v",
			n+1, got.Loss, got.GradientNorm, want.Loss, want.GradientNorm)
	}
	units := map[HeadName]float64{}
	for _, l := range want.Losses {
		units[HeadName{l.Task, l.Head}] = l.Units
	}
	for _, l := range got.Losses {
		if l.Units != units[HeadName{l.Task, l.Head}] {
			t.Errorf("step %d: %v units of head %q, want %v", n+1, l.Units, l.Head, units[HeadName{l.Task, l.Head}])
		}
	}
	params := whole.host.Params()
	for i, w := range half.host.Params() {
		d, wants := half.host.Total().Of(w), whole.host.Total().Of(params[i])
		for k := range d {
			if !(math.Abs(float64(d[k]-wants[k])) <= bound) {
				t.Fatalf("step %d: gradient %v of %s, want %v", n+1, d[k], w.Name, wants[k])
			}
		}
	}
}

func TestAReducerIsNotForAnEncoderWithAMemoryOfItsOwn(t *testing.T) {
	m := residentModel(t, 0)
	plan := smallPlan()
	plan.Reducer = &summing{with: newProcesses(1)}
	want := "gradients of an encoder with a memory of its own are not summed over processes"
	if _, err := New(m, smallData(m, 8), plan); err == nil || err.Error() != want {
		t.Errorf("New = %v, want %s", err, want)
	}
}
