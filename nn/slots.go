package nn

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// slotted is an optimizer's state of parameters that have been updated.
type slotted map[*Param]*slotState

// slotState is what an optimizer keeps of a parameter: the number of its updates, and a vector for each slot.
type slotState struct {
	steps int
	slots [][]float32
}

// slotSize is a slot of a parameter and its number of values.
type slotSize struct {
	name   string
	values int
}

// sizeOf returns the number of values of all slots.
func sizeOf(slots []slotSize) int {
	n := 0
	for _, s := range slots {
		n += s.values
	}
	return n
}

// of returns the state of w for another update: zeros before the first.
func (all *slotted) of(w *Param, slots func(*Param) []slotSize) *slotState {
	s := (*all)[w]
	if s == nil {
		s = &slotState{}
		for _, slot := range slots(w) {
			s.slots = append(s.slots, kernel.Floats(slot.values))
		}
		if *all == nil {
			*all = slotted{}
		}
		(*all)[w] = s
	}
	s.steps++
	return s
}

// state returns the state of w as Optimizer.State does.
func (all slotted) state(w *Param, slots func(*Param) []slotSize) OptimizerState {
	s := all[w]
	if s == nil {
		return OptimizerState{}
	}
	state := OptimizerState{Steps: s.steps}
	for i, slot := range slots(w) {
		state.Slots = append(state.Slots, Slot{slot.name, s.slots[i]})
	}
	return state
}

// set replaces the states of params by copies, or returns an error and changes nothing.
func (all *slotted) set(params []*Param, states []OptimizerState, slots func(*Param) []slotSize) error {
	fresh := make([]*slotState, len(params))
	for i, w := range params {
		s := states[i]
		if err := checkSlots(s, slots(w)); err != nil {
			return fmt.Errorf("parameter %q: %w", w.Name, err)
		}
		if s.Steps == 0 {
			continue
		}
		fresh[i] = &slotState{steps: s.Steps}
		for _, slot := range s.Slots {
			fresh[i].slots = append(fresh[i].slots, slices.Clone(slot.Values))
		}
	}
	if *all == nil {
		*all = slotted{}
	}
	for i, w := range params {
		delete(*all, w)
		if fresh[i] != nil {
			(*all)[w] = fresh[i]
		}
	}
	return nil
}

// checkSlots returns an error if a state is not one of those slots, or of no update.
func checkSlots(s OptimizerState, slots []slotSize) error {
	if s.Steps == 0 && len(s.Slots) == 0 {
		return nil
	}
	if s.Steps < 1 || len(s.Slots) != len(slots) || len(slots) == 0 {
		return fmt.Errorf("%d updates and %d slots of the optimizer's state; want %d slots after an update",
			s.Steps, len(s.Slots), len(slots))
	}
	for i, want := range slots {
		if slot := s.Slots[i]; slot.Name != want.name || len(slot.Values) != want.values {
			return fmt.Errorf("slot %q of the optimizer's state has %d values; want %q with %d",
				slot.Name, len(slot.Values), want.name, want.values)
		}
	}
	return nil
}
