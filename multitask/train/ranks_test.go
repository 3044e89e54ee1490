package train

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/nn"
)

func TestRanksTrainToTheSameBytesWithTheSameShards(t *testing.T) {
	rounded := func(change func(*multitask.Model, *Plan)) func(*multitask.Model, *Plan) {
		return func(m *multitask.Model, p *Plan) {
			change(m, p)
			p.RoundGradients = true
		}
	}
	for _, c := range append(shardedTrainings(),
		sharded{"rounded gradients", [2]int{0, 1}, rounded(func(*multitask.Model, *Plan) {})},
		sharded{"rounded gradients and running means", [2]int{0, 1},
			rounded(func(_ *multitask.Model, p *Plan) { p.Average = 0.9 })},
		sharded{"rounded gradients, combined", [2]int{0, 1},
			rounded(func(_ *multitask.Model, p *Plan) { p.Weighting = pcgrad() })},
	) {
		t.Run(c.name, c.checkRanks)
	}
}

// checkRanks compares trainings in several ranks with that in one.
func (c sharded) checkRanks(t *testing.T) {
	const shards, steps = 8, 4
	one, want := c.train(t, 1, shards, steps, 0.1)
	for _, ranks := range []int{2, 4, 8} {
		all, got := c.train(t, ranks, shards, steps, 0.1)
		if differs := differentState(t, one[0], all[0], true); differs != "" {
			t.Errorf("%d ranks: %s differs from that of one", ranks, differs)
		}
		for rank, training := range all {
			if differs := differentState(t, one[0], training, false); differs != "" {
				t.Errorf("%d ranks: %s of rank %d differs from that of one", ranks, differs, rank)
			}
		}
		for n := range got {
			if got[n].Tokens != want[n].Tokens || want[n].Tokens == 0 {
				t.Errorf("%d ranks: %d tokens in step %d, want %d", ranks, got[n].Tokens, n+1, want[n].Tokens)
			}
			if got[n].Loss != want[n].Loss || got[n].GradientNorm != want[n].GradientNorm {
				t.Errorf("%d ranks, step %d: loss %v and gradient %v, want %v and %v", ranks, n+1, got[n].Loss,
					got[n].GradientNorm, want[n].Loss, want[n].GradientNorm)
			}
		}
	}
}

func TestAStepReportsWhatItExchanges(t *testing.T) {
	c := sharded{"plain", [2]int{0, 1}, func(*multitask.Model, *Plan) {}}
	if _, one := c.train(t, 1, 2, 1, 0); one[0].Exchange != nil {
		t.Errorf("one process has exchanged %v", *one[0].Exchange)
	}
	_, two := c.train(t, 2, 2, 1, 0)
	x := two[0].Exchange
	if x.Sent <= 0 || x.Active <= 0 || x.Active > two[0].Time || x.Waited <= 0 || x.Waited > two[0].Time {
		t.Errorf("a step of %v in two ranks has exchanged %+v", two[0].Time, *x)
	}
	c.change = func(_ *multitask.Model, p *Plan) { p.RoundGradients = true }
	if _, rounded := c.train(t, 2, 2, 1, 0); rounded[0].Exchange.Sent >= x.Sent {
		t.Errorf("rounded gradients: %d bytes are sent, of others %d", rounded[0].Exchange.Sent, x.Sent)
	}
}

// With rounded gradients steps are about the same; one shard's gradients are rounded too.
func TestRoundedGradientsAreNearly(t *testing.T) {
	const steps, bound = 3, 0.01 // bfloat16 has 8 bits
	exact := sharded{"exact", [2]int{0, 1}, func(*multitask.Model, *Plan) {}}
	rounded := sharded{"rounded", [2]int{0, 1}, func(_ *multitask.Model, p *Plan) { p.RoundGradients = true }}
	for _, shards := range []int{1, 8} {
		_, want := exact.train(t, 1, shards, steps, 0)
		_, got := rounded.train(t, 1, shards, steps, 0)
		for n := range got {
			compareLosses(t, n, got[n], want[n], bound)
			if got[n].GradientNorm == want[n].GradientNorm {
				t.Errorf("%d shards, step %d: gradients are not rounded", shards, n+1)
			}
		}
	}
}

// wide are trainings of a matrix of which each of eight ranks updates a part.
func wide(t *testing.T) []sharded {
	model := func(m *multitask.Model) {
		params := nn.NewParams(3)
		*m = *modelOf(t, "{layers: 1, width: 12, heads: 2, feed_forward: 6000, max_positions: 32}", params,
			params.In("encoder"), "none", 0.1)
	}
	return []sharded{
		{"adamw", [2]int{0, 1}, func(m *multitask.Model, _ *Plan) { model(m) }},
		{"sgd", [2]int{0, 1}, func(m *multitask.Model, p *Plan) {
			model(m)
			p.Optimizer = updates.Of("sgd", updates.SGD{Momentum: 0.9})
		}},
	}
}

func TestRanksThatDivideAMatrixTrainToTheSameBytes(t *testing.T) {
	for _, c := range wide(t) {
		t.Run(c.name, c.checkRanks)
	}
}

// A training in four ranks, of which each has the moments of a part of a matrix, goes on in two and in one.
func TestDividedMomentsGoOnInOtherNumbersOfRanks(t *testing.T) {
	const shards, steps, interrupted = 8, 4, 2
	for _, c := range wide(t) {
		one, _ := c.train(t, 1, shards, steps, 0.1)
		four := c.start(t, 4, shards, steps, 0.1)
		c.run(t, four, 0, interrupted)
		divided := slices.ContainsFunc(four[0].host.Params(), func(w *nn.Param) bool {
			return !w.Table && len(four[0].host.Units([]*nn.Param{w})) > shards
		})
		if !divided {
			t.Fatal("no parameter is divided among all ranks")
		}
		snapshot := mustSnapshot(t, four[0])
		for _, ranks := range []int{1, 2} {
			all := c.start(t, ranks, shards, steps, 0.1)
			for _, training := range all {
				if err := restoreSame(training, snapshot); err != nil {
					t.Fatal(err)
				}
			}
			c.run(t, all, interrupted, steps)
			if differs := differentState(t, one[0], all[0], true); differs != "" {
				t.Errorf("%s, resumed in %d: %s differs from that of one process", c.name, ranks, differs)
			}
		}
	}
}

func TestClosingATrainingInRanksKeepsTheParameters(t *testing.T) {
	c := wide(t)[0]
	all, _ := c.train(t, 2, 2, 1, 0)
	before := values(all[1].model.Model)
	all[1].Close()
	freed, err := all[1].plan.Ranks.Floats(70_000) // of the matrices
	if err != nil {
		t.Fatal(err)
	}
	for i := range freed {
		freed[i] = float32(math.NaN())
	}
	if !reflect.DeepEqual(values(all[1].model.Model), before) {
		t.Error("the parameters lie in memory that is free")
	}
}

// A snapshot without the moments that other ranks have would go on with other bytes.
func TestASnapshotNeedsTheStateOfAllRanks(t *testing.T) {
	const ranks, want = 2, "other ranks have a part of the optimizer's state, which is not collected"
	c := sharded{"plain", [2]int{0, 1}, func(*multitask.Model, *Plan) {}}
	all, _ := c.train(t, ranks, ranks, 1, 0)
	for _, training := range all {
		training.length.Steps++ // one more update
	}
	var wait sync.WaitGroup
	for _, training := range all {
		wait.Go(func() {
			if _, err := training.Snapshot(nil); err != nil { // train has collected it
				t.Error(err)
			}
			if _, err := training.Update(c.batches(training.model.Model, 0)); err != nil {
				t.Error(err)
			}
			if _, err := training.Snapshot(nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Snapshot after an update = %v, want %s", err, want)
			}
		})
	}
	wait.Wait()
}

func TestNativeSumsAreThoseOfTheTree(t *testing.T) {
	const shards, steps, bound = 4, 3, 2e-6
	for _, c := range shardedTrainings() {
		_, want := c.train(t, 1, shards, steps, 0.1)
		before := c.change
		c.change = func(m *multitask.Model, p *Plan) {
			before(m, p)
			p.NativeSums = true
		}
		all, got := c.train(t, shards, shards, steps, 0.1)
		for n := range got {
			compareLosses(t, n, got[n], want[n], bound)
		}
		for _, training := range all {
			if differs := differentState(t, all[0], training, true); differs != "" {
				t.Errorf("%s: %s differs between ranks", c.name, differs)
			}
		}
	}
}

// All ranks name the text of a bad loss, which one of them has in a shard of its own.
func TestRanksNameTheSameBadTexts(t *testing.T) {
	errs := make([]error, 4)
	var wait sync.WaitGroup
	for rank, transport := range collectivetest.Local(len(errs)) {
		m, data := threeGroups(t, "none", 12)
		spoil(m, data, math.NaN(), 3)
		plan := smallPlan()
		var err error
		if plan.Ranks, err = collective.New(transport); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			errs[rank] = trainOn(t.Context(), m, data, plan, func(Event) error { return nil })
		})
	}
	wait.Wait()
	const want = `the loss of head "mood" is NaN, on 1 of 4 texts: mood.csv:5 "text 3 `
	for rank, err := range errs {
		if err == nil || err.Error() != errs[0].Error() || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s, as rank 0: %v", rank, err, want, errs[0])
		}
	}
}

// Ranks evaluate parts of dev, and fit heads to parts of the training texts.
func TestRanksEvaluateAsOneProcessDoes(t *testing.T) {
	for _, freeze := range []string{"none", "all"} {
		checkEvaluations(t, freeze)
	}
}

func checkEvaluations(t *testing.T, freeze string) {
	t.Helper()
	train := func(ranks int) (evaluations [][]Evaluation) {
		evaluations = make([][]Evaluation, ranks)
		var wait sync.WaitGroup
		for rank, transport := range collectivetest.Local(ranks) {
			m, data := threeGroups(t, freeze, 21)
			plan := smallPlan()
			plan.Shards, plan.BatchSize, plan.CacheMemory = 4, 2, 1<<20
			if ranks > 1 {
				var err error
				if plan.Ranks, err = collective.New(transport); err != nil {
					t.Fatal(err)
				}
			}
			wait.Go(func() {
				err := trainOn(t.Context(), m, data, plan, func(event Event) error {
					if e, ok := event.(Evaluation); ok {
						evaluations[rank] = append(evaluations[rank], e)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return evaluations
	}
	want := train(1)[0]
	if len(want) < 2 {
		t.Fatalf("%d evaluations", len(want))
	}
	for _, ranks := range []int{2, 4} {
		for rank, got := range train(ranks) {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("freeze %s, rank %d of %d: evaluations are %v, want %v", freeze, rank, ranks, got, want)
			}
		}
	}
}
