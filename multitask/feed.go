package multitask

import (
	"fmt"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
)

// feed gives one group's training batches, shuffled anew each time they begin again. With BatchTokens a shuffle may make a
// batch more or less than the first, by which epochs are counted, so that what is left goes over into the next epoch.
type feed struct {
	examples []*corpus.Example
	lengths  []int
	plan     Plan
	rand     *rand.Rand
	batches  [][]int // numbers of examples
	used     int     // how many of them have been given
}

// newFeeds makes a feed for each group.
func newFeeds(m *Model, data []Data, plan Plan) ([]*feed, error) {
	if plan.Accumulate < 1 || plan.Epochs < 1 || plan.BatchSize < 1 {
		panic(fmt.Sprintf("multitask: a plan of %d epochs, batches of %d, %d accumulated", plan.Epochs, plan.BatchSize, plan.Accumulate))
	}
	var feeds []*feed
	for g, d := range data {
		if len(d.Train) == 0 {
			return nil, fmt.Errorf("task %q has no training examples", m.Groups[g].Name)
		}
		f := &feed{examples: d.Train, lengths: lengths(d.Train), plan: plan, rand: rand.New(rand.NewPCG(plan.Seed, streamBatches+uint64(g)))}
		f.shuffle()
		feeds = append(feeds, f)
	}
	return feeds, nil
}

func lengths(examples []*corpus.Example) []int {
	n := make([]int, len(examples))
	for i, e := range examples {
		n[i] = e.Tokens()
	}
	return n
}

func (f *feed) count() int { return len(f.batches) }

func (f *feed) shuffle() {
	f.batches, f.used = corpus.Batches(f.lengths, f.plan.BatchSize, f.plan.BatchTokens, f.rand), 0
}

func (f *feed) next() []*corpus.Example {
	if f.used == len(f.batches) {
		f.shuffle()
	}
	f.used++
	return pick(f.examples, f.batches[f.used-1])
}

func pick(examples []*corpus.Example, numbers []int) []*corpus.Example {
	picked := make([]*corpus.Example, len(numbers))
	for i, n := range numbers {
		picked[i] = examples[n]
	}
	return picked
}
