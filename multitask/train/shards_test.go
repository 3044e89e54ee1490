package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
)

func TestCutDividesABatchByTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, texts := range []int{0, 1, 3, 8, 32, 100} {
		for _, n := range []int{1, 2, 4, 8, 16} {
			var batch []*corpus.Example
			longest, all := 0, 0
			for range texts {
				e := &corpus.Example{Windows: []corpus.Encoding{{IDs: make([]int32, 1+r.IntN(40))}}}
				batch = append(batch, e)
				longest, all = max(longest, e.Tokens()), all+e.Tokens()
			}
			parts := cut(batch, n)
			if !slices.Equal(slices.Concat(parts...), batch) || len(parts) != n {
				t.Fatalf("%d texts in %d shards are not the texts in their order", texts, n)
			}
			for _, part := range parts {
				tokens := 0
				for _, e := range part {
					tokens += e.Tokens()
				}
				if tokens > all/n+longest+1 {
					t.Errorf("%d texts in %d shards: one has %d of %d tokens", texts, n, tokens, all)
				}
			}
		}
	}
}

func TestTreeSumAddsNeighboursFirst(t *testing.T) {
	var sum treeSum
	v := []float64{1e16, 1, -1e16, 1}
	for i := range v {
		sum.add([]float64{v[i], 1})
	}
	want := []float64{(v[0] + v[1]) + (v[2] + v[3]), 4} // 0: one after the other it is 1
	if got := sum.total(); !slices.Equal(got, want) {
		t.Errorf("the sum is %v, want %v", got, want)
	}
}

func TestShardsThatAreNoPowerOfTwoPanic(t *testing.T) {
	plan := smallPlan()
	plan.Shards = 3
	panics(t, "train: a plan of 3 shards; want a power of two", func() { plan.shards() })
}

// shardedBatches are the batches of a step, some of whose texts lack a label.
func (c sharded) batches(m *multitask.Model, step int) []Batch {
	data := smallData(m, 48)
	for i := range data[0].Train {
		if i%3 == 0 {
			data[0].Train[i].Targets = []corpus.Target{nil, nil}
		}
	}
	var both []Batch
	for p, g := range c.groups {
		at := 12*step + 6*p
		both = append(both, Batch{g, data[g].Train[at : at+6]})
	}
	return both
}

// start returns trainings of a model with dropout, for so many steps in ranks that have shards.
func (c sharded) start(t *testing.T, ranks, shards, steps int, dropout float64) (all []*Training) {
	t.Helper()
	for _, transport := range collectivetest.Local(ranks) {
		m := smallModel(t, "none", dropout)
		plan := smallPlan()
		plan.Shards = shards
		c.change(m, &plan)
		if ranks > 1 {
			group, err := collective.New(transport)
			if err != nil {
				t.Fatal(err)
			}
			plan.Ranks = group
		}
		all = append(all, stepping(t, m, plan, steps))
	}
	return all
}

// run runs the steps from number from, 0 for the first, until number to of trainings in ranks, and returns the reports
// of the first.
func (c sharded) run(t *testing.T, all []*Training, from, to int) []Step {
	t.Helper()
	reports := make([][]Step, len(all))
	var wait sync.WaitGroup
	for rank, training := range all {
		wait.Go(func() {
			for n := from; n < to; n++ {
				report, err := training.Update(c.batches(training.model.Model, n))
				if err != nil {
					t.Error(err)
				}
				reports[rank] = append(reports[rank], report)
			}
			if err := training.CollectState(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	return reports[0]
}

// train is start, and runs all steps.
func (c sharded) train(t *testing.T, ranks, shards, steps int, dropout float64) ([]*Training, []Step) {
	t.Helper()
	all := c.start(t, ranks, shards, steps, dropout)
	return all, c.run(t, all, 0, steps)
}

// differentState names a parameter, or of the optimizer's state too, that differs between two trainings; "": none.
func differentState(t *testing.T, a, b *Training, optimizer bool) string {
	t.Helper()
	of, other := mustSnapshot(t, a), mustSnapshot(t, b)
	for s, section := range of.Kinds {
		for i, p := range section.Params {
			q := other.Kinds[s].Params[i]
			if !slices.Equal(p.Values, q.Values) {
				return p.Name
			}
			for k, slot := range p.Slots {
				if optimizer && (k >= len(q.Slots) || !slices.Equal(slot.Values, q.Slots[k].Values)) {
					return fmt.Sprintf("the %s of %s", slot.Name, p.Name)
				}
			}
		}
	}
	return ""
}

func TestShardsTrainAsWholeBatchesDo(t *testing.T) {
	const steps, bound = 3, 2e-6
	for _, c := range shardedTrainings() {
		t.Run(c.name, func(t *testing.T) {
			whole, want := c.train(t, 1, 1, steps, 0)
			for _, shards := range []int{2, 16} { // more than there are texts in a batch
				all, got := c.train(t, 1, shards, steps, 0)
				for n := range got {
					compareLosses(t, n, got[n], want[n], bound)
				}
				params := whole[0].host.Params()
				for i, w := range all[0].host.Params() {
					d, wants := all[0].host.Total().Values(w), whole[0].host.Total().Values(params[i])
					for k := range d {
						if !(math.Abs(float64(d[k]-wants[k])) <= bound) {
							t.Fatalf("%d shards: gradient %v of %s, want %v", shards, d[k], w.Name, wants[k])
						}
					}
				}
			}
		})
	}
}

// compareLosses compares a step with that over whole batches.
func compareLosses(t *testing.T, n int, got, want Step, bound float64) {
	t.Helper()
	if !(math.Abs(got.Loss-want.Loss) <= bound) || !(math.Abs(got.GradientNorm-want.GradientNorm) <= bound) {
		t.Errorf("step %d: loss %v and gradient %v, want %v and %v",
			n+1, got.Loss, got.GradientNorm, want.Loss, want.GradientNorm)
	}
	for i, l := range got.Losses {
		if w := want.Losses[i]; l.Units != w.Units || !(math.Abs(l.Sum-w.Sum) <= bound*w.Units) {
			t.Errorf("step %d: loss %v of %v units of head %q, want %v of %v", n+1, l.Sum, l.Units, l.Head, w.Sum,
				w.Units)
		}
	}
}

func TestShardsAreNotForAnEncoderWithAMemoryOfItsOwn(t *testing.T) {
	m := residentModel(t, 0)
	plan := smallPlan()
	plan.Shards = 2
	want := "gradients of an encoder with a memory of its own are not summed over shards"
	if _, err := New(m, smallData(m, 8), plan); err == nil || err.Error() != want {
		t.Errorf("New = %v, want %s", err, want)
	}
}
