package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
)

// shards are the parts of the batches of a step: each runs through the model by itself, and their gradients and losses
// are summed in a binary tree, so that it does not matter which process runs which.
type shards struct {
	all        int // of each batch, a power of two
	first, own int // those of this process
}

// shards returns the shards of this process.
func (plan Plan) shards() shards {
	rank, processes := 0, 1
	if plan.Ranks != nil {
		rank, processes = plan.Ranks.Rank()
	}
	all := max(plan.Shards, processes)
	own := all / processes
	return shards{all, rank * own, own}
}

// cut divides the examples of a batch into n shards of about equally many tokens, in their order. Some may be empty.
func cut(examples []*corpus.Example, n int) [][]*corpus.Example {
	tokens := 0
	for _, e := range examples {
		tokens += e.Tokens()
	}
	parts := make([][]*corpus.Example, n)
	before := 0
	for _, e := range examples {
		middle := 2*before + e.Tokens() // in half tokens
		at := min(middle*n/max(1, 2*tokens), n-1)
		parts[at] = append(parts[at], e)
		before += e.Tokens()
	}
	return parts
}

// treeSum sums vectors in a binary tree, neighbours first, as they come: sums[l] is that of 2^l vectors, nil if there is
// none.
type treeSum struct{ sums [][]float64 }

// add adds a vector, which it keeps.
func (t *treeSum) add(values []float64) {
	for level := range t.sums {
		if t.sums[level] == nil {
			t.sums[level] = values
			return
		}
		for i, v := range t.sums[level] {
			values[i] += v
		}
		t.sums[level] = nil
	}
	t.sums = append(t.sums, values)
}

// total returns the sum of the vectors, of which there was a power of two.
func (t *treeSum) total() []float64 {
	return slices.Concat(t.sums...)
}
