package nn

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// averages are running means of a HostStore's parameters over updates: copies after the first update, then
// decay·mean + (1-decay)·value, as torch.optim.swa_utils' get_ema_multi_avg_fn has them.
type averages struct {
	decay  float64
	params []*Param
	of     map[*Param][]float32 // the means, or with inUse the parameters' own values; nil before the first update
	inUse  bool                 // the parameters hold the means

	idle     map[*Param]*idleRows // of tables some of whose rows only decay; see rows
	followed map[*Param]bool      // means that the optimizer has updated
}

// Average makes the store keep a running mean of each parameter that learns, which State has as more slots. AdamW
// updates means together with parameters, other optimizers' parameters take another pass.
func (s *HostStore) Average(decay float64) {
	s.average = &averages{
		decay: decay, params: s.Params(), idle: map[*Param]*idleRows{}, followed: map[*Param]bool{},
	}
	if a, ok := s.optimizer.(*AdamW); ok {
		a.averages = s.average
	}
}

// UseAverage makes the parameters hold their running means, as soon as there are any, or their own values again. Update
// panics while the means are in use. State has the parameters' own values in any case.
func (s *HostStore) UseAverage(use bool) {
	a := s.average
	if a == nil || a.of == nil || use == a.inUse {
		return
	}
	for _, w := range a.params {
		if use {
			a.fill(w)
		}
		w.Data, a.of[w] = a.of[w], w.Data
		w.Changed()
	}
	a.inUse = use
}

// follow updates the means after an update of the parameters.
func (a *averages) follow() {
	switch {
	case a == nil:
		return
	case a.inUse:
		panic("nn: an update of parameters that hold their running means")
	case a.of == nil:
		a.of = map[*Param][]float32{}
		for _, w := range a.params {
			a.of[w] = kernel.Floats(len(w.Data))
			copy(a.of[w], w.Data)
		}
		return
	}
	for _, w := range a.params {
		idle := a.idle[w]
		switch {
		case a.followed[w]:
		case idle != nil: // a table that this update has not changed
			kernel.FollowRows(a.of[w], w.Data, w.rowLength(), idle.active, a.gain())
			idle.decay(a.decay, 1)
		default:
			kernel.Follow(a.of[w], w.Data, a.gain())
		}
	}
	clear(a.followed)
}

func (a *averages) gain() float32 { return float32(1 - a.decay) }

// own returns w's own values and its mean, nil if there is none.
func (a *averages) own(w *Param) (values, mean []float32) {
	switch {
	case a == nil || a.of == nil:
		return w.Data, nil
	case a.inUse:
		return a.of[w], w.Data
	}
	a.fill(w)
	return w.Data, a.of[w]
}
