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

	idle     map[*Param]*idleRows // of tables some of whose rows only decay; see rows
	followed map[*Param]bool      // means that the optimizer has updated
}

func (a *averages) follow() {
	switch {
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

// idleRows are the rows of a table that no batch has named since their mean was a copy of them: in updates by AdamW
// they only decay, all by the same factors, so that their means are a common multiple of them, and need not be updated.
// In a vocabulary they are most rows.
type idleRows struct {
	active []bool  // [V] the others, whose means are updated
	excess float32 // the mean of an idle row is 1 + excess times the row
}

// decay updates the means of idle rows, which have been multiplied by factor: with mean' = d·mean + (1-d)·row',
// row' = factor·row and mean = (1+e)·row, mean' = (1 + d·((1+e)/factor - 1))·row'.
func (r *idleRows) decay(d float64, factor float32) {
	r.excess = float32(d * ((1+float64(r.excess))/float64(factor) - 1))
}

// whole makes k, an update of all of w, update its mean too.
func (a *averages) whole(w *Param, k *kernel.AdamW) {
	a.fill(w)
	delete(a.idle, w)
	k.Mean, k.Gain = a.of[w], a.gain()
	a.followed[w] = true
}

// begins reports whether the next update of w's rows decides which are idle.
func (a *averages) begins(w *Param) bool { return a.idle[w] == nil }

// rows makes k, an update of the active rows of w in which all others decay, update their means too. It returns the
// rows to update, which may be more: those that were ever active.
func (a *averages) rows(w *Param, active []bool, k *kernel.AdamW) []bool {
	idle := a.idle[w]
	length := w.rowLength()
	if idle == nil { // only rows whose means are still copies are idle
		idle = &idleRows{active: slices.Clone(active)}
		for r, is := range active {
			lo, hi := r*length, (r+1)*length
			idle.active[r] = is || !slices.Equal(a.of[w][lo:hi], w.Data[lo:hi])
		}
		a.idle[w] = idle
	}
	for r, is := range active {
		if is && !idle.active[r] {
			a.fillRows(w, length, r)
			idle.active[r] = true
		}
	}
	k.Mean, k.Gain = a.of[w], a.gain()
	idle.decay(a.decay, k.Factor())
	a.followed[w] = true
	return idle.active
}

func (a *averages) fill(w *Param) {
	idle := a.idle[w]
	if idle == nil {
		return
	}
	for r, active := range idle.active {
		if !active {
			a.fillRows(w, w.rowLength(), r)
		}
	}
}

// fillRows computes the mean of an idle row.
func (a *averages) fillRows(w *Param, length, r int) {
	factor := 1 + a.idle[w].excess
	mean := a.of[w][r*length : (r+1)*length]
	for i, v := range w.Data[r*length : (r+1)*length] {
		mean[i] = factor * v
	}
}

// The names of the means among the slots of a parameter's state: after the optimizer's, the means, and for a table with
// idle rows a 1 for each row that is active, and the excess of the others.
const (
	slotAverage       = "average"
	slotAverageRows   = "average_rows"
	slotAverageExcess = "average_excess"
)

// slots returns the slots of a parameter's mean, none if there is no mean.
func (a *averages) slots(w *Param, mean []float32, copies *Copies) []Slot {
	if mean == nil {
		return nil
	}
	all := []Slot{{slotAverage, copies.Clone(mean)}}
	if idle := a.idle[w]; idle != nil {
		rows := make([]float32, len(idle.active))
		for r, active := range idle.active {
			if active {
				rows[r] = 1
			}
		}
		all = append(all, Slot{slotAverageRows, rows}, Slot{slotAverageExcess, []float32{idle.excess}})
	}
	return all
}

// split removes the slots of means from states, those of the parameters in their order, and returns them, none where
// there are none. Without averages they are dropped.
func (a *averages) split(states []OptimizerState) (means [][]Slot, err error) {
	for i, s := range states {
		at := slices.IndexFunc(s.Slots, func(s Slot) bool { return s.Name == slotAverage })
		if at >= 0 {
			states[i].Slots = s.Slots[:at:at]
		}
		if a == nil {
			continue
		}
		w := a.params[i]
		switch {
		case at < 0 && len(means) > 0:
			return nil, fmt.Errorf("parameter %q: slot %q not found", w.Name, slotAverage)
		case at < 0:
			continue
		case len(means) != i:
			return nil, fmt.Errorf("parameter %q: unexpected slot %q; want one for each parameter", w.Name, slotAverage)
		}
		if err := checkMean(w, s.Slots[at:]); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", w.Name, err)
		}
		means = append(means, s.Slots[at:])
	}
	return means, nil
}

func checkMean(w *Param, slots []Slot) error {
	want := []slotSize{{slotAverage, len(w.Data)}}
	if len(slots) > 1 {
		want = append(want, slotSize{slotAverageRows, len(w.Data) / w.rowLength()}, slotSize{slotAverageExcess, 1})
	}
	return checkSlots(OptimizerState{Steps: 1, Slots: slots}, want)
}

// set replaces the means by copies of those in slots, one list for each parameter, or none.
func (a *averages) set(means [][]Slot) {
	if a == nil {
		return
	}
	a.of = nil
	clear(a.idle)
	if len(means) == 0 {
		return
	}
	a.of = map[*Param][]float32{}
	for i, w := range a.params {
		a.of[w] = slices.Clone(means[i][0].Values)
		if len(means[i]) == 1 {
			continue
		}
		idle := &idleRows{excess: means[i][2].Values[0]}
		for _, active := range means[i][1].Values {
			idle.active = append(idle.active, active != 0)
		}
		a.idle[w] = idle
	}
}
