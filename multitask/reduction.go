package multitask

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/nn"
)

// reduction sums the gradients of a step over the ranks as they become final, in an order that is the same in each
// rank and step: in buckets of several parameters, while the backward pass continues.
type reduction struct {
	order []*nn.Param
	at    int                // index in order: those before have been passed on
	final map[*nn.Param]bool // nothing is added to their gradients any more
	host  *nn.HostStore

	bucket  []*nn.Param // that is not full
	values  int         // of bucket
	buckets chan bucket
	result  chan error // of all buckets
}

// bucket is parameters whose gradients are summed together: a table, or several others.
type bucket struct {
	params []*nn.Param
	of     nn.Gradients
}

// bucketValues is the number of values from which a bucket is full: long messages use a network's bandwidth, short ones
// begin early.
const bucketValues = 1 << 20

func newReduction(ranks *collective.Group, order []*nn.Param, host *nn.HostStore) *reduction {
	r := &reduction{
		order: order, final: map[*nn.Param]bool{}, host: host,
		buckets: make(chan bucket, len(order)+1), result: make(chan error, 1),
	}
	go func() {
		var s bucketSummer
		var err error
		for b := range r.buckets {
			if err == nil {
				err = s.sum(ranks, b)
			}
		}
		r.result <- err
	}()
	return r
}

// reducing returns the parameters of a store in the order in which their gradients are summed: those of heads and
// fusion, then the encoder's in reverse order of creation, as its backward pass runs from the last layer down.
func (m *Model) reducing(store *nn.HostStore) []*nn.Param {
	var outside, encoder []*nn.Param
	of := EncoderParams(m.Params)
	for _, w := range store.Params() {
		if isIn(of, w) {
			encoder = append(encoder, w)
		} else {
			outside = append(outside, w)
		}
	}
	slices.Reverse(encoder)
	return append(outside, encoder...)
}

func isIn(at nn.Params, w *nn.Param) bool { return strings.HasPrefix(w.Name, at.Path()+".") }

// ready marks a parameter's gradient as final, and passes on all final gradients that are next in order.
func (r *reduction) ready(w *nn.Param) {
	r.final[w] = true
	for r.at < len(r.order) && r.final[r.order[r.at]] {
		w := r.order[r.at]
		r.host.EndShardOf(w)
		if r.host.Total().Has(w) {
			r.pass(w, r.host.Total())
		}
		r.at++
	}
}

// pass adds a gradient to the bucket, and passes that on when it is full.
func (r *reduction) pass(w *nn.Param, of nn.Gradients) {
	if w.Table {
		r.flush(of)
		r.buckets <- bucket{[]*nn.Param{w}, of}
		return
	}
	r.bucket, r.values = append(r.bucket, w), r.values+len(w.Data)
	if r.values >= bucketValues {
		r.flush(of)
	}
}

// flush passes on the bucket.
func (r *reduction) flush(of nn.Gradients) {
	if len(r.bucket) > 0 {
		r.buckets <- bucket{r.bucket, of}
	}
	r.bucket, r.values = nil, 0
}

// readyOutside marks the gradients of all parameters but the encoder's as final.
func (r *reduction) readyOutside(encoder nn.Params) {
	for _, w := range r.order {
		if !isIn(encoder, w) {
			r.ready(w)
		}
	}
}

// finish passes on the remaining gradients, then those by task of shared parameters, and waits for the sums.
func (r *reduction) finish(tasks int) error {
	for _, w := range r.order[r.at:] {
		r.ready(w)
	}
	r.flush(r.host.Total())
	if tasks > 0 {
		for _, w := range r.host.Shared() {
			r.host.EndShardOf(w)
		}
	}
	for t := range tasks {
		for _, w := range r.host.Shared() {
			if of := r.host.TaskGradients(t); of.Has(w) {
				r.pass(w, of)
			}
		}
		r.flush(r.host.TaskGradients(t))
	}
	close(r.buckets)
	return <-r.result
}

// abandon ends the summing of a step that has failed.
func (r *reduction) abandon() {
	close(r.buckets)
	<-r.result
}

// bucketSummer sums buckets over ranks, in memory that it uses again.
type bucketSummer struct{ memory []float32 }

// sum replaces the gradients of a bucket by their sums over all ranks.
func (s *bucketSummer) sum(ranks *collective.Group, b bucket) error {
	if w := b.params[0]; w.Table {
		return s.sumRows(ranks, w, b.of)
	}
	s.memory = s.memory[:0]
	for _, w := range b.params {
		s.memory = append(s.memory, b.of.Values(w)...)
	}
	if err := sumValues(ranks, s.memory); err != nil {
		return err
	}
	at := 0
	for _, w := range b.params {
		at += copy(b.of.Of(w), s.memory[at:])
	}
	return nil
}

// sumRows sums the rows of a table's gradient that any rank has touched.
func (s *bucketSummer) sumRows(ranks *collective.Group, w *nn.Param, of nn.Gradients) error {
	touched, recorded := of.Touched(w)
	flags := append(touched, 0)
	if recorded {
		flags[len(touched)] = 1
	}
	if err := sumValues(ranks, flags); err != nil {
		return err
	}
	for r, n := range flags {
		flags[r] = min(n, 1)
	}
	touched, recorded = flags[:len(touched)], flags[len(touched)] > 0
	s.memory = of.Rows(w, touched, s.memory)
	if err := sumValues(ranks, s.memory); err != nil {
		return err
	}
	of.SetRows(w, touched, s.memory, recorded)
	return nil
}

// sumValues replaces values by their sums over all ranks.
func sumValues(ranks *collective.Group, values []float32) error {
	if err := ranks.Scatter(0, values); err != nil {
		return err
	}
	return ranks.GatherParts(0, values)
}

// reduce sums gradients, losses and measured norms over all shards.
func (s *step) reduce() error {
	if s.reduced != nil {
		tasks := 0
		if s.training.weighting.byGradients != nil {
			tasks = len(s.training.model.tasks())
		}
		if err := s.reduced.finish(tasks); err != nil {
			return err
		}
	}
	if err := s.losses.reduceSums(); err != nil {
		return err
	}
	return s.reduceSquares()
}
