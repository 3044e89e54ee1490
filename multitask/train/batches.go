package train

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
)

// Batch is examples of one group that run through the model together, encoded and with the ids of their targets set.
type Batch struct {
	Group    int
	Examples []*corpus.Example
}

// batchIterator returns one group's training batches, shuffled again after each round. Epochs are counted by the
// batches of the first shuffle. With BatchTokens later shuffles may make a batch more or less; batches that are left
// over are used in the next epoch.
type batchIterator struct {
	data    multitask.Data
	lengths []int32
	plan    Plan
	stream  *rand.PCG
	before  rand.PCG // stream before the last shuffle, from which the same batches can be made again
	batches [][]int  // numbers of examples
	used    int      // how many of them have been returned
	ahead   *reading // of the next batch from a stream; nil: it has not begun
}

func newBatchIterators(m *multitask.Model, data []multitask.Data, plan Plan) ([]*batchIterator, error) {
	if plan.Accumulate < 1 || plan.Epochs < 1 || plan.BatchSize < 1 {
		panic(fmt.Sprintf("train: a plan of %d epochs, batches of %d, %d accumulated",
			plan.Epochs, plan.BatchSize, plan.Accumulate))
	}
	var iterators []*batchIterator
	for g, d := range data {
		it := &batchIterator{
			data: d, lengths: d.Lengths(), plan: plan,
			stream: rand.NewPCG(plan.Seed, streamBatches+uint64(g)),
		}
		if len(it.lengths) == 0 {
			return nil, fmt.Errorf("task %q has no training examples", m.Groups[g].Name)
		}
		it.shuffle()
		iterators = append(iterators, it)
	}
	return iterators, nil
}

func (it *batchIterator) count() int { return len(it.batches) }

func (it *batchIterator) shuffle() {
	it.before = *it.stream
	it.batches, it.ahead = nil, nil // the memory may serve for the new ones
	it.batches = corpus.Batches(it.lengths, it.plan.BatchSize, it.plan.BatchTokens, rand.New(it.stream))
	it.used = 0
}

// next returns the next batch, and begins to read the one after it where examples are read.
func (it *batchIterator) next() ([]*corpus.Example, error) {
	if it.used == len(it.batches) {
		it.shuffle()
	}
	numbers := it.batches[it.used]
	it.used++
	if it.data.Stream == nil {
		return multitask.Pick(it.data.Train, numbers), nil
	}
	batch := it.ahead
	if batch == nil {
		batch = read(it.data.Stream, numbers)
	}
	it.ahead = nil
	if it.used < len(it.batches) {
		it.ahead = read(it.data.Stream, it.batches[it.used])
	}
	return batch.wait()
}

// last returns the numbers of the examples of the last batch that next has returned.
func (it *batchIterator) last() []int { return it.batches[it.used-1] }

// checkStreams returns an error if a head of m is fitted to examples that are streamed.
func checkStreams(m *multitask.Model, data []multitask.Data) error {
	for g, d := range data {
		for h, head := range m.Groups[g].Heads() {
			if head.Head.Describe().Fitter != nil && d.Stream != nil {
				return fmt.Errorf("head %d of task %q is fitted to training examples in memory; they are streamed", h,
					m.Groups[g].Name)
			}
		}
	}
	return nil
}

type reading struct {
	examples []*corpus.Example
	done     chan error // one for each goroutine that reads
}

// streamReaders is the number of goroutines that read a batch: disks serve several reads at once.
const streamReaders = 4

func read(stream multitask.Stream, numbers []int) *reading {
	n := min(streamReaders, len(numbers))
	r := &reading{examples: make([]*corpus.Example, len(numbers)), done: make(chan error, n)}
	for first := range n {
		go func() {
			for i := first; i < len(numbers); i += n {
				example, err := stream.At(numbers[i])
				if err != nil {
					r.done <- err
					return
				}
				r.examples[i] = example
			}
			r.done <- nil
		}()
	}
	return r
}

func (r *reading) wait() ([]*corpus.Example, error) {
	var first error
	for range cap(r.done) {
		first = cmp.Or(first, <-r.done)
	}
	return r.examples, first
}
