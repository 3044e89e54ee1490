package train

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/nn"
)

// Batch is examples of one group that run through the model together, encoded and with the ids of their targets set.
type Batch struct {
	Group    int
	Examples []*corpus.Example
}

// next returns the batches of the next update, those of all processes.
func (t *Training) next() ([]Batch, error) {
	var batches []Batch
	n := t.length
	clear(t.numbers.now)
	for round := range min(n.Rounds, divideUp(n.Batches-t.used, n.Groups)) {
		if epoch := t.used / n.PerEpoch; t.used == 0 || epoch > t.state.Epoch {
			t.state.Epoch = epoch
			t.state.Left = append(t.state.Left[:0], t.state.Batches...)
		}
		if of := t.plan.Sampler.Probabilities; of != nil && round == 0 && len(t.iterators) > 1 {
			t.probabilities = of(t.state)
		}
		t.state.Rand = rand.New(t.sampling)
		chosen := t.plan.Sampler.Next(t.state)
		if len(chosen) != n.Groups {
			panic(fmt.Sprintf("train: sampler %q named %d groups; want %d", t.plan.Sampler.Type, len(chosen), n.Groups))
		}
		for _, g := range chosen {
			examples, err := t.iterators[g].next()
			if err == nil {
				err = t.data[g].Answered(examples, t.iterators[g].last())
			}
			if err != nil {
				return nil, fmt.Errorf("step %d: %w", t.state.Step+1, err)
			}
			t.numbers.read(examples, t.iterators[g].last())
			t.state.Left[g]--
			t.state.Last = g
			batches = append(batches, Batch{g, examples})
			t.used++
		}
	}
	return batches, nil
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

// counts returns the numbers of batches that iterators have in an epoch.
func counts(iterators []*batchIterator) (all []int) {
	for _, it := range iterators {
		all = append(all, it.count())
	}
	return all
}

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

// packed is a batch in the form that the model reads.
type packed struct {
	group  int
	batch  *corpus.Batch
	serial uint64 // of its pass
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
			shards[at] = append(shards[at], packed{b.Group, t.prepared(b.Group, serial, 0, examples...), serial})
		}
	}
	return shards
}

// prepared packs examples, the first of which has a number in the batch of a pass, and lets the heads of their group
// change them: each example has a random stream of its own.
func (t *Training) prepared(group int, serial uint64, first int, examples ...*corpus.Example) *corpus.Batch {
	return t.model.Groups[group].Prepared(corpus.Pack(examples), func(example int) rand.Source {
		return rand.NewPCG(nn.Key(t.plan.Seed, serial, multitask.HiddenTokens), uint64(first+example))
	})
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
	now  map[*corpus.Example]int // of those of streams, in the batches of one step
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

// read sets the numbers of the examples of a batch, as far as a stream has them.
func (n numbers) read(examples []*corpus.Example, are []int) {
	if n.now == nil {
		return
	}
	for i, e := range examples {
		if _, kept := n.kept[e]; !kept {
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

func groupsOf(batches []Batch) []int {
	var groups []int
	for _, b := range batches {
		if !slices.Contains(groups, b.Group) {
			groups = append(groups, b.Group)
		}
	}
	return groups
}

// stepLosses holds the losses of one step: one for each head of each group that has a batch.
type stepLosses struct {
	all   []multitask.Loss
	first map[int]int // index of a group's first loss in all
	heads map[int]int // number of a group's losses
}

// newStepLosses counts the labelled units of the groups of a step, in the shards of all processes, so that the weight
// of each batch in the mean is known before it runs.
func newStepLosses(m *multitask.Model, groups []int, shards [][]packed) *stepLosses {
	s := &stepLosses{first: map[int]int{}, heads: map[int]int{}}
	byGroup := map[int][]*corpus.Batch{}
	for _, b := range slices.Concat(shards...) {
		byGroup[b.group] = append(byGroup[b.group], b.batch)
	}
	for _, g := range groups {
		of := m.Groups[g].Losses(byGroup[g]...)
		s.first[g], s.heads[g] = len(s.all), len(of)
		s.all = append(s.all, of...)
	}
	return s
}

// group returns the losses of a group; none for one without a batch.
func (s *stepLosses) group(g int) []multitask.Loss { return s.all[s.first[g]:][:s.heads[g]] }

func (s *stepLosses) labelled(group int) bool {
	return slices.ContainsFunc(s.group(group), func(l multitask.Loss) bool { return l.Units > 0 })
}

// perUnit returns the factors of a group's losses, which are sums, in the loss that is minimised.
func (s *stepLosses) perUnit(group int, factors []float64) []float64 {
	perUnit := make([]float64, len(s.group(group)))
	for h, l := range s.group(group) {
		if l.Units > 0 {
			perUnit[h] = factors[s.first[group]+h] / l.Units
		}
	}
	return perUnit
}

// add adds the values of a group's losses after a forward pass.
func (s *stepLosses) add(group int, nodes []*nn.Node) {
	for h, node := range nodes {
		if node != nil {
			s.group(group)[h].Sum += multitask.LossValue(node)
		}
	}
}

func (s *stepLosses) take() []float64 {
	sums := make([]float64, len(s.all))
	for i := range s.all {
		sums[i], s.all[i].Sum = s.all[i].Sum, 0
	}
	return sums
}

func (s *stepLosses) setSums(sums []float64) {
	for i := range s.all {
		s.all[i].Sum = sums[i]
	}
}

func (s *stepLosses) empty() *stepLosses {
	again := &stepLosses{slices.Clone(s.all), s.first, s.heads}
	again.take()
	return again
}

// total stores the factors in the losses, and returns the weighted sum of their means.
func (s *stepLosses) total(factors []float64) float64 {
	sum := 0.0
	for i := range s.all {
		s.all[i].Factor = factors[i]
		sum += factors[i] * s.all[i].Mean()
	}
	return sum
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

// Length returns the numbers of updates and evaluations of a training of m on data, and warnings of the plan's
// UnfreezeEvery in it: those of the training that New returns.
func (plan Plan) Length(m *multitask.Model, data []multitask.Data) (steps, evaluations int, all []Warning, err error) {
	m, data = plan.reads(m, data)
	iterators, err := newBatchIterators(m, data, plan)
	if err != nil {
		return 0, 0, nil, err
	}
	n, err := plan.length(counts(iterators))
	if err != nil {
		return 0, 0, nil, err
	}
	u, err := updates.NewUnfreezing(m, plan.UnfreezeEvery)
	return n.Steps, plan.evaluations(n), unfreezingWarnings(u, n), err
}

// Sizes returns the sizes of the shards of the batches of the first epoch of all groups, each of which runs through the
// model by itself; without shards a batch is one. Later epochs are shuffled again; their largest batches differ little.
func (plan Plan) Sizes(m *multitask.Model, data []multitask.Data) ([]multitask.Size, error) {
	m, data = plan.reads(m, data)
	iterators, err := newBatchIterators(m, data, plan)
	if err != nil {
		return nil, err
	}
	return plan.firstSizes(m, iterators), nil
}

func (plan Plan) firstSizes(m *multitask.Model, iterators []*batchIterator) []multitask.Size {
	var sizes []multitask.Size
	n, numbered := plan.shards().all, m.Frozen() // see Training.cut
	for _, it := range iterators {
		for _, batch := range it.batches {
			var tokens []int32
			for _, example := range batch {
				tokens = append(tokens, it.lengths[example])
			}
			parts := make([]multitask.Size, n)
			for i, at := range shardsOf(tokens, n) {
				if numbered {
					at = batch[i] % n
				}
				parts[at].Texts++
				parts[at].Tokens += int(tokens[i])
			}
			sizes = append(sizes, slices.DeleteFunc(parts, func(s multitask.Size) bool { return s.Texts == 0 })...)
		}
	}
	return sizes
}

// Memory is what a training keeps in one process beside the weights and what a pass computes, in bytes.
type Memory struct {
	Gradients int64 // those of tasks and of levels of shards too
	Optimizer int64 // what the optimizer keeps of the parameters that it updates in this process
	State     int64 // what it keeps of all parameters, which a snapshot has
	Average   int64 // running means of the weights
	Messages  int64 // buffers of several processes, outside of Go's heap
	Moved     int64 // parameters and gradients that these move out of Go's heap, which then frees as many
}

// Memory estimates the memory of a training of m in which a pass has at most so many tokens.
func (plan Plan) Memory(m *multitask.Model, tokens int) Memory {
	var n Memory
	optimizer := plan.optimizer().New(plan.WeightDecay)
	ranks, divided := 1, false
	if plan.Ranks != nil {
		_, ranks = plan.Ranks.Rank()
		divided = !plan.NativeSums && plan.Average == 0 && plan.Weighting.Combine == nil && optimizer.UpdatesEach()
	}
	dense, longest, rows := 0, 0, 0 // values: outside of tables, of the longest parameter there, of touched rows
	for _, w := range m.Params.All() {
		if w.Frozen {
			continue
		}
		n.Gradients += 4 * int64(len(w.Data))
		state := 4 * int64(optimizer.StateSize(w))
		n.State += state
		if w.Table { // one row for each token of a batch, if all differ, beside a number for each row
			rows = max(rows, min(tokens*plan.shards().all, w.Shape[0])*w.Shape[1], w.Shape[0])
			n.Optimizer += state
			continue
		}
		dense, longest = dense+len(w.Data), max(longest, len(w.Data))
		if divided {
			state /= int64(ranks)
		}
		n.Optimizer += state
	}
	if plan.Average > 0 {
		n.Average = n.Gradients
	}
	if plan.Weighting.Combine != nil {
		for _, w := range m.SharedParams() {
			if w.Learns() {
				n.Gradients += 4 * int64(len(w.Data)*len(m.TaskNames()))
			}
		}
	}
	levels := bits.Len(uint(plan.shards().own)) // of the tree in which gradients of shards are summed
	n.Gradients *= int64(levels)
	if plan.Ranks == nil {
		return n
	}

	// messages
	bucket := min(dense, bucketValues+longest) // at most
	if divided {
		n.Moved = 4 * int64(dense*(1+levels))
		n.Messages = 4 * int64(bucket) // two at once, each of which receives half of a bucket
	} else {
		rows = max(rows, bucket)
	}
	n.Messages += 4 * int64(rows+rows/2) // a copy, and half of it from another rank
	return n
}
