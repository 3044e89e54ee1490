package nn

import (
	"fmt"
	"slices"
)

// Store holds parameters that learn, their gradients and the optimizer's state, in the memory of the host or of a
// device.
type Store interface {
	// Zero clears all gradients.
	Zero()
	// SumSquares returns the sum of the squares of all gradients.
	SumSquares() float64
	// Update changes each parameter by its gradient times factor at a learning rate. Parameters that the loss of a step
	// does not depend on, such as a head whose task has no batch, keep their values and moments and do not decay, as in
	// PyTorch parameters without a gradient. SumSquares must have been called since the gradients changed.
	Update(factor float32, rate float64)
}

// SnapshotStore is a Store whose parameters and moments can be saved in a snapshot.
type SnapshotStore interface {
	// State copies the parameters and what the optimizer keeps of them, always in the same order.
	State() []ParamState
	// SetState restores what State returned. It returns an error, and changes nothing, where the state does not fit its
	// parameters.
	SetState(state []ParamState) error
}

// ParamState is a parameter and what the optimizer keeps of it.
type ParamState struct {
	Name         string
	Values       []float32
	Steps        int       // updates
	Mean, Square []float32 // moments; nil where Steps is 0
}

// HostStore is a Store in the host's memory.
type HostStore struct {
	params    []*Param
	gradients Gradients
	optimizer Optimizer
	moved     []*Param       // parameters whose gradient was not zero in the last SumSquares
	tasks     *taskGradients // nil: one gradient for all tasks
}

var (
	_ Store         = (*HostStore)(nil)
	_ SnapshotStore = (*HostStore)(nil)
)

// NewHostStore makes zero gradients for those of params that are not frozen, which the optimizer will update.
func NewHostStore(params []*Param, optimizer Optimizer) *HostStore {
	return &HostStore{params: params, gradients: NewGradients(params), optimizer: optimizer}
}

// Zero implements Store.
func (s *HostStore) Zero() {
	s.gradients.zeroAll()
	if s.tasks == nil {
		return
	}
	for _, own := range s.tasks.of {
		own.zero(s.tasks.shared)
	}
}

// SumSquares implements Store.
func (s *HostStore) SumSquares() (sum float64) {
	sum, s.moved = s.gradients.sumSquares(s.params)
	return sum
}

// Update implements Store.
func (s *HostStore) Update(factor float32, rate float64) {
	s.optimizer.Step(s.moved, s.gradients, factor, rate)
}

// Gradients returns the gradients that a backward pass adds to: those of the selected task, if they are kept by
// task.
func (s *HostStore) Gradients() Gradients {
	if s.tasks != nil {
		return s.tasks.of[s.tasks.at]
	}
	return s.gradients
}

// Total returns the gradients that Update applies.
func (s *HostStore) Total() Gradients { return s.gradients }

// Params returns the parameters that learn.
func (s *HostStore) Params() []*Param {
	return slices.DeleteFunc(slices.Clone(s.params), func(w *Param) bool { return w.Frozen })
}

// State implements SnapshotStore.
func (s *HostStore) State() []ParamState {
	var all []ParamState
	for _, w := range s.Params() {
		p := ParamState{Name: w.Name, Values: slices.Clone(w.Data)}
		if m := s.optimizer.Moments(w); m != nil {
			p.Steps, p.Mean, p.Square = m.Steps, slices.Clone(m.Mean), slices.Clone(m.Square)
		}
		all = append(all, p)
	}
	return all
}

// SetState implements SnapshotStore.
func (s *HostStore) SetState(state []ParamState) error {
	params := s.Params()
	if err := CheckState(params, state); err != nil {
		return err
	}
	for i, w := range params {
		p := state[i]
		copy(w.Data, p.Values)
		w.Changed()
		if p.Steps == 0 {
			s.optimizer.SetMoments(w, nil)
			continue
		}
		s.optimizer.SetMoments(w, &Moments{Steps: p.Steps, Mean: slices.Clone(p.Mean), Square: slices.Clone(p.Square)})
	}
	return nil
}

// CheckState returns an error if the names and sizes in a state are not those of params, in their order.
func CheckState(params []*Param, state []ParamState) error {
	for i := range max(len(params), len(state)) {
		switch {
		case i >= len(state):
			return fmt.Errorf("parameter %q not found", params[i].Name)
		case i >= len(params):
			return fmt.Errorf("unexpected parameter %q", state[i].Name)
		case state[i].Name != params[i].Name:
			return fmt.Errorf("unexpected parameter %q; want %q", state[i].Name, params[i].Name)
		case len(state[i].Values) != len(params[i].Data):
			return fmt.Errorf("parameter %q has %d values; want %d",
				state[i].Name, len(state[i].Values), len(params[i].Data))
		}
		if err := state[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the moments do not fit the values.
func (p ParamState) check() error {
	switch {
	case p.Steps < 0:
		return fmt.Errorf("parameter %q was updated %d times", p.Name, p.Steps)
	case p.Steps == 0 && (p.Mean != nil || p.Square != nil):
		return fmt.Errorf("parameter %q has moments, but was never updated", p.Name)
	case p.Steps > 0 && (len(p.Mean) != len(p.Values) || len(p.Square) != len(p.Values)):
		return fmt.Errorf("parameter %q of %d values has moments of %d and %d",
			p.Name, len(p.Values), len(p.Mean), len(p.Square))
	}
	return nil
}
