package multitask

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// reduction passes the gradients of a step to a Reducer as they become final, in an order that is the same in each
// process and step, independent of a process's batches.
type reduction struct {
	reducer nn.Reducer
	order   []*nn.Param
	at      int                // index in order: those before have been passed on
	final   map[*nn.Param]bool // nothing is added to their gradients any more
	host    *nn.HostStore
}

func newReduction(reducer nn.Reducer, order []*nn.Param, host *nn.HostStore) *reduction {
	return &reduction{reducer: reducer, order: order, final: map[*nn.Param]bool{}, host: host}
}

// reducing returns the parameters of a store in the order in which a Reducer receives them: those of heads and fusion,
// then the encoder's in reverse order of creation, as its backward pass runs from the last layer down.
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
		if r.host.Total().Has(w) {
			r.reducer.Ready(w, r.host.Total().Of(w))
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

// finish passes on the remaining gradients, and waits for the sums.
func (r *reduction) finish() error {
	for _, w := range r.order[r.at:] {
		r.ready(w)
	}
	return r.reducer.Wait()
}

// reduce sums gradients, losses and measured norms over all processes.
func (s *step) reduce() error {
	if s.reduced == nil {
		return nil
	}
	if err := s.reduced.finish(); err != nil {
		return err
	}
	if s.training.weighting.byGradients != nil {
		for t := range s.training.model.tasks() {
			for _, w := range s.training.host.Shared() {
				if d := s.training.host.TaskGradients(t).Of(w); d != nil {
					s.training.plan.Reducer.Ready(w, d)
				}
			}
			if err := s.training.plan.Reducer.Wait(); err != nil {
				return err
			}
		}
	}
	if err := s.losses.reduceSums(); err != nil {
		return err
	}
	return s.reduceSquares()
}
