package multitask

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// reduction sums the gradients of a step over the ranks as they become final, in an order that is the same in each
// rank and step, while the backward pass continues.
type reduction struct {
	exchange *exchange
	order    []*nn.Param
	at       int                // index in order: those before have been passed on
	final    map[*nn.Param]bool // nothing is added to their gradients any more
	left     map[*bucket]int    // parameters of a bucket that have not been passed on

	sums   chan bucketSum // of buckets whose updates are not divided
	result chan error     // of those
}

// bucketSum is a bucket and the gradients that are to be summed.
type bucketSum struct {
	*bucket
	of nn.Gradients
}

func newReduction(x *exchange, order []*nn.Param) *reduction {
	r := &reduction{
		exchange: x, order: order, final: map[*nn.Param]bool{}, left: map[*bucket]int{},
		sums: make(chan bucketSum, len(x.buckets)), result: make(chan error, 1),
	}
	for _, b := range x.buckets {
		r.left[b] = len(b.params)
	}
	go func() {
		var err error
		for b := range r.sums {
			if err == nil {
				err = x.sum(b.bucket, b.of, func(f func() error) error { return f() }) // the step counts its wait
			}
		}
		r.result <- err
	}()
	return r
}

// start sums the gradients of a bucket, which are final.
func (r *reduction) start(b *bucket) {
	if b.bounds == nil {
		r.sums <- bucketSum{b, r.exchange.host.Total()}
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
		r.exchange.host.EndShardOf(w)
		b := r.exchange.of[w]
		if r.left[b]--; r.left[b] == 0 {
			r.start(b)
		}
		r.at++
	}
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

// abandon ends the summing of a step that has failed.
func (r *reduction) abandon() {
	r.wait() // the step has an error already
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
	numbers, err := s.training.sumNumbers(slices.Concat(s.losses.sums.total(), s.sums.total()))
	if err != nil {
		return err
	}
	s.losses.setSums(numbers)
	if s.squares != nil {
		s.squares = numbers[len(s.losses.all):]
	}
	return nil
}

// sumNumbers replaces numbers by their sums over all ranks.
func (t *Training) sumNumbers(numbers []float64) ([]float64, error) {
	if t.exchange == nil {
		return numbers, nil
	}
	return numbers, t.exchange.sumNumbers(numbers)
}
