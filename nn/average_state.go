package nn

import (
	"fmt"
	"slices"
)

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
	if a == nil {
		for i, s := range states {
			if at := slices.IndexFunc(s.Slots, func(s Slot) bool { return s.Name == slotAverage }); at >= 0 {
				states[i].Slots = s.Slots[:at:at]
			}
		}
		return nil, nil
	}
	for i, w := range a.params {
		slots := states[i].Slots
		at := slices.IndexFunc(slots, func(s Slot) bool { return s.Name == slotAverage })
		if at < 0 {
			if len(means) > 0 {
				return nil, fmt.Errorf("parameter %q: slot %q not found", w.Name, slotAverage)
			}
			continue
		}
		if len(means) != i {
			return nil, fmt.Errorf("parameter %q: unexpected slot %q; want one for each parameter", w.Name, slotAverage)
		}
		if err := checkMean(w, slots[at:]); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", w.Name, err)
		}
		means = append(means, slots[at:])
		states[i].Slots = slots[:at:at]
	}
	return means, nil
}

// checkMean returns an error if slots are not those of a mean of w.
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
