package train

import (
	"cmp"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
)

// exchange sums the gradients of the shards of a step over several processes, in buckets. Where each rank updates only
// parts of the parameters, the ranks exchange those too.
type exchange struct {
	ranks   *collective.Group
	host    *nn.HostStore
	outside []*nn.Param // those of heads and fusion
	order   []*nn.Param // in which gradients are summed
	tasks   int         // whose gradients of shared parameters are kept; 0: they are not
	last    *reduction  // of the last shard
	buckets []*bucket
	of      map[*nn.Param]*bucket
	shared  []*bucket // of parameters whose gradients are kept by task
	divided bool      // each rank updates its part of each bucket but tables
	native  bool      // sums are the transport's
	memory  []float32
	waited  time.Duration // for other ranks, in the step at hand
	before  collective.Traffic
}

// bucket is parameters whose gradients are summed together: a table, or several others.
type bucket struct {
	params []*nn.Param
	bounds []int // of the units that ranks share, in the memory of placed parameters; nil: not divided
}

// bucketValues is the number of values from which a bucket is full: long messages use a network's bandwidth, short ones
// begin early.
const bucketValues = 1 << 20

// newExchange divides the parameters of a store into buckets, in the order in which their gradients become final, and
// the updates of the store among the ranks where that is possible. Gradients of shared parameters are kept for so many
// tasks.
func newExchange(plan Plan, m *multitask.Model, host *nn.HostStore, tasks int) (*exchange, error) {
	ranks := plan.Ranks
	if plan.RoundGradients {
		ranks.RoundSums()
	}
	rank, n := ranks.Rank()
	x := &exchange{ranks: ranks, host: host, of: map[*nn.Param]*bucket{}, native: plan.NativeSums, tasks: tasks}
	x.setOrder(m)
	x.divided = host.CanPlace() && !x.native
	x.buckets = bucketsOf(x.order)
	var dense []*nn.Param
	for _, b := range x.buckets {
		for _, w := range b.params {
			if x.of[w] = b; !w.Table {
				dense = append(dense, w)
			}
		}
	}
	if !x.divided {
		return x, nil
	}

	// the parts of this rank
	if err := host.Place(dense, ranks.Floats); err != nil {
		return nil, err
	}
	var own [][2]int
	for _, b := range x.buckets {
		if b.params[0].Table {
			continue
		}
		b.bounds = host.Units(b.params)
		from, to := collective.Part(len(b.bounds)-1, rank, n)
		own = append(own, [2]int{b.bounds[from], b.bounds[to]})
	}
	host.Own(own, x.sumNumbers)
	return x, nil
}

// setOrder sets the order in which gradients are summed: first those of heads and fusion, then the encoder's in reverse
// order of creation, as its backward pass runs from the last layer down. Those of shared parameters that are kept by
// task are summed task by task instead.
func (x *exchange) setOrder(m *multitask.Model) {
	var encoder []*nn.Param
	of := multitask.EncoderParams(m.Params)
	for _, w := range x.host.Params() {
		if multitask.IsIn(of, w) {
			encoder = append(encoder, w)
		} else {
			x.outside = append(x.outside, w)
		}
	}
	slices.Reverse(encoder)
	x.order = slices.Concat(x.outside, encoder)
	if x.tasks > 0 {
		shared := x.host.Shared()
		x.order = slices.DeleteFunc(x.order, func(w *nn.Param) bool { return slices.Contains(shared, w) })
		x.shared = bucketsOf(shared)
	}
}

func bucketsOf(order []*nn.Param) []*bucket {
	var all []*bucket
	var open *bucket
	values := 0
	for _, w := range order {
		if w.Table {
			all = append(all, &bucket{params: []*nn.Param{w}})
			continue
		}
		if open == nil || values >= bucketValues {
			open, values = &bucket{}, 0
			all = append(all, open)
		}
		open.params, values = append(open.params, w), values+len(w.Data)
	}
	return all
}

// sumDuring runs the backward passes of the last shard of this process, and meanwhile sums the gradients that become
// final. It returns when the store has the sums of all processes.
func (x *exchange) sumDuring(backward func() error) error {
	x.last = newReduction(x)
	if err := backward(); err != nil {
		x.last.wait() // what has begun ends; what it returns comes after the error
		return err
	}
	return x.last.finish()
}

// observe returns the gradients into as the encoder's backward pass adds to them, in the last batch of the last shard:
// those of heads and fusion are final, and each of the encoder's as soon as that pass says so.
func (x *exchange) observe(into nn.Gradients) nn.Gradients {
	for _, w := range x.outside {
		x.last.ready(w)
	}
	return into.Observed(x.last.ready)
}

func (x *exchange) measure() { x.waited, x.before = 0, x.ranks.Traffic() }

// report returns what was exchanged since measure.
func (x *exchange) report() *Exchange {
	traffic := x.ranks.Traffic().Since(x.before)
	return &Exchange{Sent: traffic.Sent, Active: traffic.Active, Waited: x.waited}
}

// wait runs what does nothing but wait for messages, in the goroutine of the step, and counts its time.
func (x *exchange) wait(f func() error) error {
	start := time.Now()
	err := f()
	x.waited += time.Since(start)
	return err
}

func (x *exchange) sumNumbers(numbers []float64) error {
	return x.wait(func() error { return x.ranks.SumNumbers(numbers) })
}

// reduction sums the gradients of a step over the ranks as they become final, in an order that is the same in each
// rank and step, while the backward pass continues.
type reduction struct {
	exchange *exchange
	at       int                // index in the exchange's order: those before have been passed on
	final    map[*nn.Param]bool // nothing is added to their gradients any more
	left     map[*bucket]int    // parameters of a bucket that have not been passed on

	sums   chan *bucket // whose updates are not divided, and whose gradients are final
	result chan error   // of those
}

func newReduction(x *exchange) *reduction {
	r := &reduction{
		exchange: x, final: map[*nn.Param]bool{}, left: map[*bucket]int{},
		sums: make(chan *bucket, len(x.buckets)), result: make(chan error, 1),
	}
	gradients := x.host.Total()
	for _, b := range x.buckets {
		r.left[b] = len(b.params)
	}
	go func() {
		var err error
		for b := range r.sums {
			if err == nil {
				err = x.sum(b, gradients, func(f func() error) error { return f() }) // the step counts its wait
			}
		}
		r.result <- err
	}()
	return r
}

// start sums the gradients of a bucket, which are final.
func (r *reduction) start(b *bucket) {
	if b.bounds == nil {
		r.sums <- b
		return
	}
	_, gradients := r.exchange.host.Placed()
	r.exchange.ranks.Scatter(gradients, b.bounds)
}

// wait waits for all sums.
func (r *reduction) wait() error {
	close(r.sums)
	err := r.exchange.ranks.Scattered()
	return cmp.Or(<-r.result, err)
}

// ready marks a parameter's gradient as final, and passes on all final gradients that are next in order.
func (r *reduction) ready(w *nn.Param) {
	r.final[w] = true
	order := r.exchange.order
	for r.at < len(order) && r.final[order[r.at]] {
		w := order[r.at]
		r.exchange.host.EndShardOf(w)
		b := r.exchange.of[w]
		if r.left[b]--; r.left[b] == 0 {
			r.start(b)
		}
		r.at++
	}
}

// finish passes on the remaining gradients, then those by task of shared parameters, and waits for the sums.
func (r *reduction) finish() error {
	tasks := r.exchange.tasks
	for _, w := range r.exchange.order[r.at:] {
		r.ready(w)
	}
	host := r.exchange.host
	if tasks > 0 {
		for _, w := range host.Shared() {
			host.EndShardOf(w)
		}
	}
	err := r.exchange.wait(r.wait)
	for t := range tasks {
		for _, b := range r.exchange.shared {
			if err == nil {
				err = r.exchange.sum(b, host.TaskGradients(t), r.exchange.wait)
			}
		}
	}
	return err
}

// sum replaces the gradients of a bucket whose parameters are not divided by their sums over all ranks. wait runs what
// waits for messages.
func (x *exchange) sum(b *bucket, of nn.Gradients, wait func(func() error) error) error {
	if b.params[0].Table {
		return x.sumRows(b.params[0], of, wait)
	}
	n := 0
	for _, w := range b.params {
		n += len(w.Data)
	}
	memory, err := x.floats(n)
	if err != nil {
		return err
	}
	at := 0
	for _, w := range b.params {
		if of.Has(w) {
			at += copy(memory[at:], of.Values(w))
		}
	}
	if err := wait(func() error { return x.sumValues(memory[:at]) }); err != nil {
		return err
	}
	at = 0
	for _, w := range b.params {
		if of.Has(w) {
			at += copy(of.Of(w), memory[at:])
		}
	}
	return nil
}

// sumRows sums the rows of a table's gradient that any rank has touched.
func (x *exchange) sumRows(w *nn.Param, of nn.Gradients, wait func(func() error) error) error {
	// which rows, and whether any rank has recorded them
	touched, recorded := of.Touched(w)
	flags, err := x.floats(len(touched) + 1)
	if err != nil {
		return err
	}
	if copy(flags, touched); recorded {
		flags[len(touched)] = 1
	}
	if err := wait(func() error { return x.ranks.Sum(flags) }); err != nil {
		return err
	}
	n := 0
	for r := range touched {
		if touched[r] = min(flags[r], 1); touched[r] != 0 {
			n++
		}
	}
	recorded = flags[len(touched)] > 0

	// their values
	rows, err := x.floats(n * w.Shape[1])
	if err != nil {
		return err
	}
	of.Rows(w, touched, rows)
	if err := wait(func() error { return x.sumValues(rows) }); err != nil {
		return err
	}
	of.SetRows(w, touched, rows, recorded)
	return nil
}

func (x *exchange) sumValues(values []float32) error {
	if x.native {
		return x.ranks.SumNative(values)
	}
	return x.ranks.Sum(values)
}

// floats returns memory for n values, which is used again.
func (x *exchange) floats(n int) ([]float32, error) {
	if n > len(x.memory) {
		memory, err := x.ranks.Floats(max(n, 2*len(x.memory)))
		if err != nil {
			return nil, err
		}
		x.ranks.Release(x.memory)
		x.memory = memory
	}
	clear(x.memory[:n])
	return x.memory[:n], nil
}

// close gives back the memory of messages, of which the parameters are moved out.
func (x *exchange) close() {
	x.ranks.Release(x.memory)
	x.memory = nil
	if x.divided {
		x.host.TakeBack(x.ranks.Release)
	}
}

// updated sends the parameters that this rank has updated to all others, and receives theirs.
func (x *exchange) updated() error {
	if !x.divided {
		return nil
	}
	values, _ := x.host.Placed()
	return x.wait(func() error {
		return x.gather(values, func(b *bucket) bool { return slices.ContainsFunc(b.params, x.host.Moved) })
	})
}

// gather replaces those values in memory of the placed parameters that other ranks update by what they have, in buckets
// that are wanted.
func (x *exchange) gather(values []float32, wanted func(*bucket) bool) error {
	var bounds [][]int
	for _, b := range x.buckets {
		if b.bounds != nil && wanted(b) {
			bounds = append(bounds, b.bounds)
		}
	}
	return x.ranks.GatherParts(values, bounds...)
}

// collect makes the first rank's store have the optimizer's state of all ranks, until the next update.
func (x *exchange) collect() error {
	if !x.divided {
		return nil
	}
	rank, _ := x.ranks.Rank()
	return x.host.Collect(rank == 0, x.ranks.MaxNumbers, func(values []float32) error {
		return x.gather(values, func(*bucket) bool { return true })
	})
}

// Exchange is what a step of a training in several ranks sends, and how long it takes this rank: what of Active is not
// in Waited is hidden behind the backward pass.
type Exchange struct {
	Sent   int64         // bytes
	Active time.Duration // in which messages were under way
	Waited time.Duration // in which the step did nothing but wait for messages, and for the sums of what they brought
}

// CompareRanks returns the first rank whose settings differ from those of rank 0, and what differs: Was in rank 0, Now
// in that rank. All ranks call it, and have the same result; nil is no difference.
func CompareRanks(ranks *collective.Group, own []snapshots.Setting) (rank int, differs *snapshots.Difference,
	err error) {
	all, err := collective.Gather(ranks, own)
	if err != nil {
		return 0, nil, err
	}
	for rank, of := range all {
		if found := snapshots.Differences(all[0], of); len(found) > 0 {
			// the number of steps follows from the data
			cause := slices.IndexFunc(found, func(d snapshots.Difference) bool { return d.Of != snapshots.OfSteps })
			return rank, &found[max(0, cause)], nil
		}
	}
	return 0, nil, nil
}
