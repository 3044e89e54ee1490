package nn

import "slices"

// state returns what the optimizer keeps of w, of a placed parameter only in the parts that this store updates: zeros
// in the others.
func (s *HostStore) state(w *Param) OptimizerState {
	if s.placed == nil || !slices.Contains(s.placed.params, w) {
		return s.optimizer.State(w)
	}
	if whole, is := s.placed.collected[w]; is {
		return whole
	}
	var whole OptimizerState
	for _, v := range s.placed.own[w] {
		part := s.optimizer.State(v.Param)
		whole.Steps = part.Steps
		for i, slot := range part.Slots {
			if i == len(whole.Slots) {
				whole.Slots = append(whole.Slots, Slot{slot.Name, make([]float32, len(w.Data))})
			}
			copy(whole.Slots[i].Values[v.from:], slot.Values)
		}
	}
	return whole
}

// Collected reports whether State has what the optimizer keeps of all values, as far as this process is to have it:
// always where no other process updates any, else from Collect to the next update.
func (s *HostStore) Collected() bool { return s.placed == nil || s.placed.collected != nil }

// Collect makes State have what the optimizer keeps of whole parameters, until the next update, if keep is true. All
// processes call it: largest replaces numbers by the largest of all, gather the parts of others in memory of the placed
// parameters by what they have.
func (s *HostStore) Collect(keep bool, largest func([]float64) error, gather func([]float32) error) error {
	p := s.placed
	if p == nil {
		return nil
	}
	steps := make([]float64, len(p.params))
	for i, w := range p.params {
		for _, v := range p.own[w] {
			steps[i] = float64(s.optimizer.State(v.Param).Steps)
		}
	}
	if err := largest(steps); err != nil {
		return err
	}
	collected := map[*Param]OptimizerState{}
	for i, w := range p.params {
		if keep {
			collected[w] = OptimizerState{Steps: int(steps[i])}
		}
	}
	memory := s.gradients.memory // which the next step clears
	for slot, name := range slotNames(s.optimizer) {
		clear(memory)
		for _, w := range p.params {
			for _, v := range p.own[w] {
				if state := s.optimizer.State(v.Param); state.Steps > 0 {
					copy(p.part(memory, w)[v.from:], state.Slots[slot].Values)
				}
			}
		}
		if err := gather(memory); err != nil {
			return err
		}
		for i, w := range p.params {
			if keep && steps[i] > 0 {
				state := collected[w]
				state.Slots = append(state.Slots, Slot{name, slices.Clone(p.part(memory, w))})
				collected[w] = state
			}
		}
	}
	p.collected = collected
	return nil
}

// slotNames returns the names of the slots that an optimizer has of each parameter.
func slotNames(o Optimizer) []string {
	var names []string
	for _, slot := range o.(interface{ slots(*Param) []slotSize }).slots(&Param{}) {
		names = append(names, slot.name)
	}
	return names
}

// setState replaces what the optimizer keeps of params.
func (s *HostStore) setState(params []*Param, states []OptimizerState) error {
	if s.placed == nil {
		return s.optimizer.SetState(params, states)
	}
	s.placed.collected = nil
	var parts []*Param
	var of []OptimizerState
	for i, w := range params {
		if _, is := s.placed.at[w]; !is {
			parts, of = append(parts, w), append(of, states[i])
			continue
		}
		for _, v := range s.placed.own[w] {
			part := OptimizerState{Steps: states[i].Steps}
			for _, slot := range states[i].Slots {
				if len(slot.Values) == len(w.Data) { // else SetState returns an error
					slot.Values = slices.Clone(slot.Values[v.from:v.to])
				}
				part.Slots = append(part.Slots, slot)
			}
			parts, of = append(parts, v.Param), append(of, part)
		}
	}
	return s.optimizer.SetState(parts, of)
}
