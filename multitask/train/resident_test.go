package train

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// resident is an encoder whose parameters and gradients are out of the training's reach, as on a device.
type resident struct {
	encoders.Encoder
	params nn.Params // of a tree that the model does not know
	store  *residentStore
	room   int // tokens of a batch that there is memory for; 0: any number
}

func (r *resident) Describe() encoders.Description {
	d := r.Encoder.Describe()
	d.Levels, d.Backward = nil, r.backward
	d.Resident = &encoders.Resident{Learns: true, Frozen: r.frozen, Reserve: r.reserve, Store: r.makeStore}
	return d
}

func (r *resident) reserve(tokens int, _ encoders.Mode) error {
	if r.room > 0 && tokens > r.room {
		return errors.New("its memory is full")
	}
	return nil
}

func (r *resident) frozen() (all []*nn.Param, err error) {
	for _, w := range r.params.All() {
		if w.Frozen {
			all = append(all, w)
		}
	}
	return all, nil
}

func (r *resident) makeStore(weightDecay float64, tasks int) nn.Store {
	r.store = &residentStore{nn.NewHostStore(r.params.All(), nn.NewAdamW(weightDecay))}
	if tasks > 0 {
		r.store.memory.SeparateTasks(tasks, r.params.All())
	}
	return r.store
}

// backward adds nothing to into, where its parameters have no gradients.
func (r *resident) backward(p *nn.Pass, at [][]float32, _ nn.Gradients) {
	r.Encoder.Describe().Backward(p, at, r.store.memory.Gradients())
}

// residentStore shows of its memory what the interfaces say.
type residentStore struct{ memory *nn.HostStore }

var (
	_ nn.Store         = (*residentStore)(nil)
	_ nn.TaskStore     = (*residentStore)(nil)
	_ nn.SnapshotStore = (*residentStore)(nil)
)

func (s *residentStore) Zero()                        { s.memory.Zero() }
func (s *residentStore) SumSquares() (float64, error) { return s.memory.SumSquares() }
func (s *residentStore) Update(factor float32, rate float64) error {
	return s.memory.Update(factor, rate)
}
func (s *residentStore) SelectTask(t int)                     { s.memory.SelectTask(t) }
func (s *residentStore) Dots() [][]float64                    { return s.memory.Dots() }
func (s *residentStore) Combine(factors []float64)            { s.memory.Combine(factors) }
func (s *residentStore) State() ([]nn.ParamState, error)      { return s.memory.State() }
func (s *residentStore) SetState(state []nn.ParamState) error { return s.memory.SetState(state) }

// residentModel is smallModel with a resident encoder.
func residentModel(t *testing.T, dropout float64) *multitask.Model {
	own := nn.NewParams(3).In("encoder")
	m := smallModelOf(t, nn.NewParams(3), own, "none", dropout)
	m.Encoder = &resident{Encoder: m.Encoder, params: own}
	return m
}

// everyValue lists the model's parameters and its encoder's.
func everyValue(m *multitask.Model) map[string][]float32 {
	all := values(m)
	if r, ok := m.Encoder.(*resident); ok {
		for _, w := range r.params.All() {
			all[w.Name] = slices.Clone(w.Data)
		}
	}
	return all
}

func TestAnEncoderWithAMemoryOfItsOwnIsTrainedAsTheHosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		bound  float64 // of a difference; 0: the same bytes
		change func(m *multitask.Model, p *Plan)
	}{
		{"without clipping", 0, func(_ *multitask.Model, p *Plan) { p.ClipNorm = 0 }},
		{"heads at a rate of their own", 0, func(_ *multitask.Model, p *Plan) { p.HeadRate, p.ClipNorm = 3*p.Rate, 0 }},
		{"clipped", 1e-6, func(_ *multitask.Model, p *Plan) { p.ClipNorm = 0.1 }},
		{"learned weighting", 1e-6, func(m *multitask.Model, p *Plan) { p.Weighting = uncertainty(m) }},
		{"gradients balanced", 1e-5, weighted("gradnorm", "{initial_steps: 1, learning_rate: 0.1}")},
		{"conflicts averted", 1e-5, weighted("cagrad", "")},
		{"gradients combined", 1e-5, func(_ *multitask.Model, p *Plan) {
			p.Weighting, p.Sampler = pcgrad(),
				inTurns("round_robin", 2)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			trained := func(m *multitask.Model) map[string][]float32 {
				plan := smallPlan()
				plan.Accumulate = 2
				c.change(m, &plan)
				train(t, m, smallData(m, 12), plan)
				return everyValue(m)
			}
			want, got := trained(smallModel(t, "none", 0.1)), trained(residentModel(t, 0.1))
			if len(got) != len(want) {
				t.Fatalf("%d parameters, want %d", len(got), len(want))
			}
			for name, w := range want {
				for i, v := range w {
					if d := math.Abs(float64(got[name][i] - v)); !(d <= c.bound) {
						t.Fatalf("%s differs by %v, want at most %v", name, d, c.bound)
					}
				}
			}
		})
	}
}

func TestASnapshotHoldsAnEncodersOwnMemory(t *testing.T) {
	start := func() *Training {
		m := residentModel(t, 0.1)
		training, err := New(m, smallData(m, 12), smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	whole := start()
	for range 4 {
		advance(t, whole)
	}
	s := written(t, mustSnapshot(t, whole))
	toEnd(t, whole)

	again := start()
	again.model.Encoder.(*resident).params.All()[0].Data[0]++
	mustRestore(t, again, s)
	if err := again.Complete(context.Background(), func(Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(everyValue(again.model.Model), everyValue(whole.model.Model)) {
		t.Error("a run that goes on from a snapshot has other parameters")
	}
}

func TestASnapshotGoesOnInAnotherMemory(t *testing.T) {
	start := func(m *multitask.Model) *Training {
		plan := smallPlan()
		plan.ClipNorm = 0 // the norm is a sum in another order
		training, err := New(m, smallData(m, 12), plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	host := func() *multitask.Model { return smallModel(t, "none", 0.1) }
	apart := func() *multitask.Model { return residentModel(t, 0.1) }
	for name, models := range map[string][2]func() *multitask.Model{
		"to its own": {host, apart}, "to the host's": {apart, host},
	} {
		whole := start(models[0]())
		for range 4 {
			advance(t, whole)
		}
		s := written(t, mustSnapshot(t, whole))
		toEnd(t, whole)

		again := start(models[1]())
		mustRestore(t, again, s)
		toEnd(t, again)
		if !reflect.DeepEqual(everyValue(again.model.Model), everyValue(whole.model.Model)) {
			t.Errorf("%s: a run that goes on has other parameters", name)
		}
	}
}

func TestALackOfMemoryForTheLargestBatchIsKnownAtTheStart(t *testing.T) {
	m := residentModel(t, 0)
	m.Encoder.(*resident).room = 1
	_, err := New(m, smallData(m, 12), smallPlan())
	if err == nil || !strings.HasSuffix(err.Error(), " tokens: its memory is full") {
		t.Errorf("New: %v", err)
	}
}
