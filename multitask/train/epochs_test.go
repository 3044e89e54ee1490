package train

import (
	"context"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// drawn returns all batches of a training of three groups, in the order in which its updates take them.
func drawn(t *testing.T, change func(p *Plan)) (*Training, []Batch) {
	t.Helper()
	m, data := threeGroups(t, "none", 10)
	plan := smallPlan()
	plan.Accumulate = 2
	change(&plan)
	training, err := New(m, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(training.Close)
	var all []Batch
	for training.used < training.length.Batches {
		batches, err := training.next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, batches...)
	}
	return training, all
}

// TestEachEpochHasEachExampleOnce covers the samplers that take each batch of an epoch once.
func TestEachEpochHasEachExampleOnce(t *testing.T) {
	for name, sampler := range map[string]samplers.Sampler{"proportional": inTurns("proportional", 1),
		"round_robin": inTurns("round_robin", 1)} {
		t.Run(name, func(t *testing.T) {
			training, batches := drawn(t, func(p *Plan) { p.Sampler = sampler })
			perEpoch := training.length.PerEpoch
			if len(batches) != 2*perEpoch {
				t.Fatalf("%d batches in 2 epochs of %d", len(batches), perEpoch)
			}
			for epoch := range 2 {
				times := map[*corpus.Example]int{}
				for _, b := range batches[epoch*perEpoch : (epoch+1)*perEpoch] {
					for _, e := range b.Examples {
						times[e]++
					}
				}
				for g, data := range training.data {
					for i, e := range data.Train {
						if times[e] != 1 {
							t.Errorf("epoch %d: example %d of group %d is in %d batches", epoch+1, i, g, times[e])
						}
					}
				}
			}
		})
	}
}

// TestRoundRobinGoesOnWithinAnUpdate: the last group is that of the last batch, not that of the last update.
func TestRoundRobinGoesOnWithinAnUpdate(t *testing.T) {
	_, batches := drawn(t, func(p *Plan) { p.Sampler = inTurns("round_robin", 1) })
	var groups []int
	for _, b := range batches[:6] {
		groups = append(groups, b.Group)
	}
	if want := []int{0, 1, 2, 0, 1, 2}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
}

// keyed records the keys of the random streams of an encoder's passes in training.
type keyed struct {
	encoders.Encoder
	keys []uint64
}

func (k *keyed) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if p.Training {
		k.keys = append(k.keys, p.Key("dropout"))
	}
	return k.Encoder.Encode(p, tokens, mode)
}

func TestEachBatchHasMasksOfItsOwn(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	encoder := &keyed{Encoder: m.Encoder}
	m.Encoder = encoder
	plan := smallPlan()
	plan.Accumulate, plan.NeverEvaluate = 2, true
	train(t, m, data, plan)

	perEpoch := 0
	for _, d := range data {
		perEpoch += divideUp(len(d.Train), plan.BatchSize)
	}
	slices.Sort(encoder.keys)
	if n := len(slices.Compact(encoder.keys)); n != 2*perEpoch {
		t.Errorf("%d different keys in %d batches", n, 2*perEpoch)
	}
}

func TestASamplerReceivesTheLossesOfEachStep(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	var seen [][]multitask.Loss
	plan := smallPlan()
	plan.Sampler = inTurns("proportional", 1)
	plan.Sampler.Observe = func(_ multitask.State, losses []multitask.Loss) { seen = append(seen, losses) }
	steps, _ := train(t, m, data, plan)
	if len(seen) != len(steps) {
		t.Fatalf("losses of %d steps, want %d", len(seen), len(steps))
	}
	for i, step := range steps {
		if !slices.Equal(seen[i], step.Losses) {
			t.Errorf("step %d: losses %v, want %v", i+1, seen[i], step.Losses)
		}
	}
}

func TestAMissingFactorPanics(t *testing.T) {
	tooFew, noFactors := pcgrad(), weightings.Weighting{Type: "none"}
	tooFew.Combine = func(s multitask.State, tasks []string, dots [][]float64) []float64 {
		return pcgrad().Combine(s, tasks, dots)[1:]
	}
	noFactors.Weigh = func(multitask.State, []multitask.Loss) []float64 { return nil }
	for want, weighting := range map[string]weightings.Weighting{
		`train: weighting "pcgrad" returned 0 factors of 1 gradients`: tooFew,
		`train: weighting "none" returned 0 factors of 1 losses`:      noFactors,
	} {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.Weighting = weighting
		panics(t, want, func() { _ = trainOn(context.Background(), m, data, plan, func(Event) error { return nil }) })
	}
}

func panics(t *testing.T, want string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	do()
}

func TestATrainingWithoutDataTakesItsCallersBatches(t *testing.T) {
	m := smallModel(t, "none", 0)
	training := stepping(t, m, smallPlan(), 1)
	panics(t, "train: Step of a training without data; call Update",
		func() { _, _ = training.Step(context.Background()) })
	panics(t, "train: Evaluate of a training without data; call Update",
		func() { _, _ = training.Evaluate(context.Background()) })
	panics(t, "train: an update without batches", func() { _, _ = training.Update(nil) })
	panics(t, "train: a training without data needs plan.MaxSteps", func() { _, _ = New(m, nil, smallPlan()) })
}
