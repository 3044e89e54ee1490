package train

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
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

// settings returns what the bytes of a training in these shards depend on; none for a single shard as it is.
func (s shards) settings(p Plan) (all []snapshots.Setting) {
	if s.all > 1 {
		all = append(all, snapshots.Setting{Key: "shards", Value: strconv.Itoa(s.all)})
	}
	if p.RoundGradients {
		all = append(all, snapshots.Setting{Key: "gradients in bfloat16", Value: "true"})
	}
	if p.NativeSums {
		all = append(all, snapshots.Setting{Key: "native sums", Value: "true"})
	}
	return all
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

// pack returns all shards of a step's batches in the form that the model reads, after heads have changed them. The
// random streams of a shard depend on its place in the step, not on the process.
func (t *Training) pack(batches []Batch) [][]packed {
	shards := make([][]packed, t.shards.all)
	for i, b := range batches {
		for at, examples := range t.cut(b) {
			if len(examples) == 0 {
				continue
			}
			serial := t.serial + 1 + uint64(i*t.shards.all+at)
			batch := t.model.Groups[b.Group].Prepared(corpus.Pack(examples), func(example int) rand.Source {
				return rand.NewPCG(nn.Key(t.plan.Seed, serial, multitask.HiddenTokens), uint64(example))
			})
			shards[at] = append(shards[at], packed{b.Group, batch, serial})
		}
	}
	return shards
}

// overShards runs the shards of this process one after the other, and returns the sums of the numbers of all shards, of
// all processes.
func (s *step) overShards(run func(parts []packed, last bool) ([]float64, error)) ([]float64, error) {
	var sums treeSum
	for i, parts := range s.shards {
		numbers, err := run(parts, i == len(s.shards)-1)
		if err != nil {
			return nil, err
		}
		sums.add(numbers)
	}
	numbers := sums.total()
	return numbers, s.training.exchange.sumNumbers(numbers)
}

// cut divides a batch into shards. With a frozen encoder each text is in the same shard each time, so that one process
// encodes it and keeps its states.
func (t *Training) cut(b Batch) [][]*corpus.Example {
	parts := make([][]*corpus.Example, t.shards.all)
	for _, e := range b.Examples {
		number, known := t.numbers.of(e)
		if !known { // the encoder learns, or the examples are the caller's
			return cut(b.Examples, t.shards.all)
		}
		parts[number%len(parts)] = append(parts[number%len(parts)], e)
	}
	return parts
}

// numbers are those of training examples in their groups. The methods of nil are those of no examples.
type numbers struct {
	kept map[*corpus.Example]int // of examples in memory
	now  map[*corpus.Example]int // of those that are read, in the batches of one step
}

// numbersOf numbers the training examples of all groups.
func numbersOf(data []multitask.Data) *numbers {
	n := &numbers{map[*corpus.Example]int{}, map[*corpus.Example]int{}}
	for _, d := range data {
		for i, e := range d.Train {
			n.kept[e] = i
		}
	}
	return n
}

// forget forgets the numbers of examples that were read.
func (n *numbers) forget() {
	if n != nil {
		clear(n.now)
	}
}

// read sets the numbers of the examples of a batch, as far as they are read for it.
func (n *numbers) read(examples []*corpus.Example, are []int) {
	if n == nil {
		return
	}
	for i, e := range examples {
		if e.Transient {
			n.now[e] = are[i]
		}
	}
}

// of returns the number of an example, if it is known.
func (n *numbers) of(e *corpus.Example) (number int, known bool) {
	if n == nil {
		return 0, false
	}
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

// total returns the sum of the vectors, of which there was a power of two.
func (t *treeSum) total() []float64 {
	return slices.Concat(t.sums...)
}
