package train

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
)

// shards are the parts of the batches of a step: each runs through the model by itself, and their gradients and losses
// are summed in a binary tree, so that it does not matter which process runs which.
type shards struct {
	all        int // of each batch, a power of two
	first, own int // those of this process
}

func (plan Plan) shards() shards {
	rank, processes := 0, 1
	if plan.Ranks != nil {
		rank, processes = plan.Ranks.Rank()
	}
	all := max(plan.Shards, processes)
	if bits.OnesCount(uint(all)) != 1 {
		panic(fmt.Sprintf("train: a plan of %d shards; want a power of two", all))
	}
	own := all / processes
	return shards{all, rank * own, own}
}

// ShardGradients returns how many gradients a process keeps besides that of the shard at hand, to sum those of its
// shards in a tree.
func (plan Plan) ShardGradients() int { return bits.Len(uint(plan.shards().own)) - 1 }

// cut divides the examples of a batch into n shards of about equally many tokens, in their order. Some may be empty.
func cut(examples []*corpus.Example, n int) [][]*corpus.Example {
	parts := make([][]*corpus.Example, n)
	for i, at := range shardsOf(multitask.Lengths(examples), n) {
		parts[at] = append(parts[at], examples[i])
	}
	return parts
}

// shardsOf returns the shard of n in which each of a batch's examples is, by their numbers of tokens.
func shardsOf(tokens []int32, n int) []int {
	all := 0
	for _, t := range tokens {
		all += int(t)
	}
	shards := make([]int, len(tokens))
	before := 0
	for i, t := range tokens {
		middle := 2*before + int(t) // in half tokens
		shards[i] = min(middle*n/max(1, 2*all), n-1)
		before += int(t)
	}
	return shards
}

// numbers are those of training examples in their groups; without maps none are known.
type numbers struct {
	kept map[*corpus.Example]int // of examples in memory
	now  map[*corpus.Example]int // of those that are read, in the batches of one step
}

func numbersOf(data []multitask.Data) numbers {
	n := numbers{map[*corpus.Example]int{}, map[*corpus.Example]int{}}
	for _, d := range data {
		for i, e := range d.Train {
			n.kept[e] = i
		}
	}
	return n
}

// read sets the numbers of the examples of a batch, as far as they are read for it.
func (n numbers) read(examples []*corpus.Example, are []int) {
	if n.now == nil {
		return
	}
	for i, e := range examples {
		if e.Transient {
			n.now[e] = are[i]
		}
	}
}

func (n numbers) of(e *corpus.Example) (number int, known bool) {
	if number, known = n.kept[e]; !known {
		number, known = n.now[e]
	}
	return number, known
}

// treeSum sums vectors in a binary tree, neighbours first, as they come: sums[l] is that of 2^l vectors, nil if there
// is none.
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

// total returns the sum of all vectors, of which there is a power of two: it is the only one in sums.
func (t *treeSum) total() []float64 {
	return slices.Concat(t.sums...)
}

// packed is a batch in the form that the model reads.
type packed struct {
	group  int
	batch  *corpus.Batch
	serial uint64 // of its pass
}
