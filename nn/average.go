package nn

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// averages are running means of a HostStore's parameters over updates: copies after the first update, then
// decay·mean + (1-decay)·value, as torch.optim.swa_utils' get_ema_multi_avg_fn has them.
type averages struct {
	decay  float64
	params []*Param
	of     map[*Param][]float32 // the means, or with inUse the parameters' own values; nil before the first update
	inUse  bool                 // the parameters hold the means
}

// slotAverage is the name of the means among the slots of a parameter's state.
const slotAverage = "average"

// Average makes the store keep a running mean of each parameter that learns, which State has as one more slot.
func (s *HostStore) Average(decay float64) { s.average = &averages{decay: decay, params: s.Params()} }

// UseAverage makes the parameters hold their running means, as soon as there are any, or their own values again. Update
// panics while the means are in use. State has the parameters' own values in any case.
func (s *HostStore) UseAverage(use bool) {
	a := s.average
	if a == nil || a.of == nil || use == a.inUse {
		return
	}
	for _, w := range a.params {
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
		kernel.Follow(a.of[w], w.Data, float32(1-a.decay))
	}
}

// own returns w's own values and its mean, nil if there is none.
func (a *averages) own(w *Param) (values, mean []float32) {
	switch {
	case a == nil || a.of == nil:
		return w.Data, nil
	case a.inUse:
		return a.of[w], w.Data
	}
	return w.Data, a.of[w]
}

// split removes the means from states, which are those of the parameters in their order, and returns them, nil where
// there are none. It changes copies of the states.
func (a *averages) split(states []OptimizerState) (means [][]float32, err error) {
	if a == nil {
		return nil, nil
	}
	for i, w := range a.params {
		slots := states[i].Slots
		last := len(slots) - 1
		if last < 0 || slots[last].Name != slotAverage {
			if len(means) > 0 {
				return nil, fmt.Errorf("parameter %q: slot %q not found", w.Name, slotAverage)
			}
			continue
		}
		if len(slots[last].Values) != len(w.Data) || len(means) != i {
			return nil, fmt.Errorf("parameter %q: unexpected slot %q of %d values; want one of %d for each parameter",
				w.Name, slotAverage, len(slots[last].Values), len(w.Data))
		}
		means = append(means, slots[last].Values)
		states[i].Slots = slots[:last:last]
	}
	return means, nil
}

// set replaces the means by copies.
func (a *averages) set(means [][]float32) {
	if a == nil {
		return
	}
	a.of = nil
	for i, mean := range means {
		if a.of == nil {
			a.of = map[*Param][]float32{}
		}
		a.of[a.params[i]] = slices.Clone(mean)
	}
}
