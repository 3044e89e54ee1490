package multitask

import (
	"fmt"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
)

// Batch is examples of one group that go through the model together, encoded and with their targets numbered.
type Batch struct {
	Group    int
	Examples []*corpus.Example
}

// batchIterator gives one group's training batches, shuffled anew each time they begin again. With BatchTokens a
// shuffle may make a batch more or less than the first, by which epochs are counted, so that what is left goes over
// into the next epoch.
type batchIterator struct {
	examples []*corpus.Example
	lengths  []int
	plan     Plan
	stream   *rand.PCG
	before   rand.PCG // stream before the last shuffle, which makes the same batches again
	batches  [][]int  // numbers of examples
	used     int      // how many of them have been given
}

// newBatchIterators makes a batch iterator for each group.
func newBatchIterators(m *Model, data []Data, plan Plan) ([]*batchIterator, error) {
	if plan.Accumulate < 1 || plan.Epochs < 1 || plan.BatchSize < 1 {
		panic(fmt.Sprintf("multitask: a plan of %d epochs, batches of %d, %d accumulated",
			plan.Epochs, plan.BatchSize, plan.Accumulate))
	}
	var iterators []*batchIterator
	for g, d := range data {
		if len(d.Train) == 0 {
			return nil, fmt.Errorf("task %q has no training examples", m.Groups[g].Name)
		}
		it := &batchIterator{
			examples: d.Train, lengths: lengths(d.Train), plan: plan,
			stream: rand.NewPCG(plan.Seed, streamBatches+uint64(g)),
		}
		it.shuffle()
		iterators = append(iterators, it)
	}
	return iterators, nil
}

func lengths(examples []*corpus.Example) []int {
	n := make([]int, len(examples))
	for i, e := range examples {
		n[i] = e.Tokens()
	}
	return n
}

func (it *batchIterator) count() int { return len(it.batches) }

func (it *batchIterator) shuffle() {
	it.before = *it.stream
	it.batches = corpus.Batches(it.lengths, it.plan.BatchSize, it.plan.BatchTokens, rand.New(it.stream))
	it.used = 0
}

func (it *batchIterator) next() []*corpus.Example {
	if it.used == len(it.batches) {
		it.shuffle()
	}
	it.used++
	return pick(it.examples, it.batches[it.used-1])
}

func pick(examples []*corpus.Example, numbers []int) []*corpus.Example {
	picked := make([]*corpus.Example, len(numbers))
	for i, n := range numbers {
		picked[i] = examples[n]
	}
	return picked
}
