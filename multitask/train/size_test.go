package train

import (
	"context"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// sizing records the batches that an encoder receives.
type sizing struct {
	encoders.Encoder
	seen []multitask.Size
}

func (s *sizing) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	s.seen = append(s.seen, multitask.Size{Texts: tokens.Rows.Texts(), Tokens: len(tokens.IDs)})
	return s.Encoder.Encode(p, tokens, mode)
}

// compareSizes orders sizes in any way.
func compareSizes(a, b multitask.Size) int {
	return slices.Compare([]int{a.Tokens, a.Texts}, []int{b.Tokens, b.Texts})
}

func TestSizesAreThoseOfTheBatchesThatAreEncoded(t *testing.T) {
	for _, budget := range []int{0, 20} {
		m := smallModel(t, "all", 0)
		data := smallData(m, 30)
		plan := smallPlan()
		plan.Epochs, plan.BatchTokens = 1, budget
		train, err := plan.Sizes(m, data)
		if err != nil {
			t.Fatal(err)
		}
		var dev []multitask.Size
		for g := range data {
			dev = append(dev, multitask.EvaluationSizes(data[g].Dev, plan.BatchSize, plan.BatchTokens)...)
		}
		for i := range dev {
			dev[i].Longest = 0
		}

		seen := &sizing{Encoder: m.Encoder}
		m.Encoder = seen
		for g := range data {
			_, err := multitask.Cached{Model: m}.Evaluate(context.Background(), &m.Groups[g], data[g].Dev,
				plan.BatchSize, plan.BatchTokens, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(dev, seen.seen) {
			t.Errorf("evaluation has batches of %v, was said to have %v", seen.seen, dev)
		}

		seen.seen, plan.NeverEvaluate = nil, true
		if err := trainOn(context.Background(), m, data, plan, func(Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(train, compareSizes)
		slices.SortFunc(seen.seen, compareSizes)
		if !slices.Equal(train, seen.seen) {
			t.Errorf("training has batches of %v, was said to have %v", seen.seen, train)
		}
	}
}

// unestimated is an encoder that does not estimate its memory.
type unestimated struct{ encoders.Encoder }

func (e unestimated) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Memory = nil
	return d
}

func TestTheLargestBatchIsTheOneThatTakesMost(t *testing.T) {
	m := smallModel(t, "none", 0)
	sizes, learning := []multitask.Size{{Texts: 3, Tokens: 10}, {Texts: 2, Tokens: 40}, {Texts: 9, Tokens: 20}},
		encoders.Workload{Training: true}
	largest, bytes := m.Largest(sizes, learning)
	if _, evaluating := m.Largest(sizes, encoders.Workload{}); largest != sizes[1] || evaluating <= 0 ||
		bytes <= evaluating {
		t.Errorf("the largest is %v with %d bytes in training and %d in evaluation, want %v", largest, bytes,
			evaluating, sizes[1])
	}
	if _, less := m.Largest(sizes, encoders.Workload{Training: true, Recompute: true}); less <= 0 || less >= bytes {
		t.Errorf("%d bytes where states are computed again, %d where they are kept", less, bytes)
	}
	if _, bytes := m.Largest(nil, learning); bytes != 0 {
		t.Errorf("no batches take %d bytes", bytes)
	}
	m.Encoder = unestimated{m.Encoder}
	if _, bytes := m.Largest(sizes, learning); bytes != 0 {
		t.Errorf("an encoder that does not tell takes %d bytes", bytes)
	}
}

// mapping has attention maps, and estimates their memory alone.
type mapping struct{ encoders.Encoder }

func (mapping) Describe() encoders.Description {
	return encoders.Description{Attention: encoders.AttentionMaps{Layers: 1, Heads: 1},
		Memory: func(w encoders.Workload) int64 { return int64(w.Mapped) }}
}

// watching observes what others emit.
type watching struct{ heads.Head }

func (w watching) Describe() heads.Description {
	d := w.Head.Describe()
	d.Observe = func(*nn.Pass, nn.Rows) {}
	return d
}

func TestAttentionMapsCountWhereAHeadObservesThem(t *testing.T) {
	m := smallModel(t, "none", 0)
	m.Encoder = mapping{m.Encoder}
	sizes := []multitask.Size{{Texts: 2, Tokens: 40, Longest: 20}, {Texts: 1, Tokens: 30, Longest: 30}}
	if _, bytes := m.Largest(sizes, encoders.Workload{}); bytes != 0 {
		t.Errorf("maps that no head observes take %d bytes", bytes)
	}
	head := &m.Groups[0].Tasks[0].Heads[0]
	head.Head = watching{head.Head}
	if largest, bytes := m.Largest(sizes, encoders.Workload{}); largest != sizes[1] || bytes != 30 {
		t.Errorf("the largest is %v with %d bytes, want %v with 30", largest, bytes, sizes[1])
	}
	if _, bytes := m.Largest(sizes, encoders.Workload{Training: true}); bytes != 0 {
		t.Errorf("in training, where no head observes them, maps take %d bytes", bytes)
	}
}
