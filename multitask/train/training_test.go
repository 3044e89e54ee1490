package train

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

func TestUpdatesByChosenBatchesAreTrains(t *testing.T) {
	const freeze, dropout, examples = "none", 0.1, 4
	plan := smallPlan()
	plan.BatchSize, plan.Epochs, plan.NeverEvaluate = examples, 3, true

	// A single group, whose texts make one batch: what Train draws is that batch, in an order by chance.
	trained := smallModel(t, freeze, dropout)
	trained.Groups = trained.Groups[:1]
	data := smallData(trained, examples)
	var want []float64
	if err := trainOn(context.Background(), trained, data, plan, func(event Event) error {
		want = append(want, event.(Step).Loss)
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	stepped := smallModel(t, freeze, dropout)
	stepped.Groups = stepped.Groups[:1]
	iterators, err := newBatchIterators(stepped, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	training := stepping(t, stepped, plan, plan.Epochs)
	var got []float64
	for range plan.Epochs {
		examples, err := iterators[0].next()
		if err != nil {
			t.Fatal(err)
		}
		report, err := training.Update([]Batch{{0, examples}})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, report.Loss)
	}
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, want Train's %v", got, want)
	}
	for i, w := range stepped.Params.All() {
		if !slices.Equal(w.Data, trained.Params.All()[i].Data) {
			t.Errorf("%s differs from what Train makes of it", w.Name)
		}
	}
}

func TestUpdateBeyondTheLastPanics(t *testing.T) {
	m := smallModel(t, "none", 0)
	training := stepping(t, m, smallPlan(), 1)
	batch := []Batch{{1, smallData(m, 2)[1].Train}}
	if _, err := training.Update(batch); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got, want := recover(), "train: step 2 of 1"; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	training.Update(batch)
}

func TestAGradientThatIsNotFiniteUpdatesNothing(t *testing.T) {
	m := smallModel(t, "none", 0)
	m.Params.In("heads").In("tags").All()[0].Data[0] = float32(math.NaN())
	training := stepping(t, m, smallPlan(), 2)
	bits := func() map[string][]uint32 {
		all := map[string][]uint32{}
		for name, values := range values(m) {
			for _, v := range values {
				all[name] = append(all[name], math.Float32bits(v))
			}
		}
		return all
	}
	before := bits()
	_, err := training.Update([]Batch{{0, smallData(m, 4)[0].Train}})
	want := `step 1: task "tags": the loss of head "tags" is NaN, on each of 4 texts: "", "", "" and 1 more; ` +
		"no update came before it: it follows from the texts, their targets and the initial weights"
	if err == nil || err.Error() != want {
		t.Errorf("Update = %v, want %s", err, want)
	}
	if !reflect.DeepEqual(bits(), before) {
		t.Error("the step changed parameters")
	}
}

// drawing records the random numbers of a sampler and a weighting.
type drawing struct {
	groups        []int // that Next names
	sampled, drew *[]uint64
}

func (d drawing) next(s multitask.State) []int {
	*d.sampled = append(*d.sampled, s.Rand.Uint64())
	return d.groups
}

func (d drawing) weigh(s multitask.State, losses []multitask.Loss) []float64 {
	*d.drew = append(*d.drew, s.Rand.Uint64())
	return weightings.Weighting{}.Factors(s, losses)
}

func TestSamplerAndWeightingHaveRandomStreamsOfTheirOwn(t *testing.T) {
	m, plan := smallModel(t, "none", 0), smallPlan()
	part := drawing{groups: []int{1}, sampled: new([]uint64), drew: new([]uint64)}
	plan.Sampler, plan.Weighting.Weigh = samplers.Sampler{Next: part.next}, part.weigh
	plan.MaxSteps, plan.NeverEvaluate = 3, true
	train(t, m, smallData(m, 8), plan)
	for name, c := range map[string]struct {
		got    []uint64
		stream uint64 // of the plan's seed, see docs/architecture.md
	}{"sampler": {*part.sampled, 1}, "weighting": {*part.drew, 2}} {
		r := rand.New(rand.NewPCG(plan.Seed, c.stream))
		if want := []uint64{r.Uint64(), r.Uint64(), r.Uint64()}; !slices.Equal(c.got, want) {
			t.Errorf("the %s's numbers are %v, want %v", name, c.got, want)
		}
	}
}

func TestASamplerThatNamesOtherThanItsNumberOfGroupsPanics(t *testing.T) {
	m, plan := smallModel(t, "none", 0), smallPlan()
	part := drawing{groups: []int{0, 1}, sampled: new([]uint64)}
	plan.Sampler = samplers.Sampler{Next: part.next, Type: "drawing"}
	training, err := New(m, smallData(m, 8), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		want := `train: sampler "drawing" named 2 groups; want 1`
		if got := recover(); got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	training.Step(context.Background())
}
