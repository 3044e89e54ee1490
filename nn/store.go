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
	// SumSquares returns the sum of the squares of all gradients, those of other processes' parts too. It returns an
	// error where these do not arrive.
	SumSquares() (float64, error)
	// Update changes each parameter by its gradient times factor at a learning rate. Parameters that the loss of a step
	// does not depend on, such as a head whose task has no batch, keep their values and moments and do not decay, as in
	// PyTorch parameters without a gradient. SumSquares must have been called since the gradients changed. A failure of
	// a device since the last Update, in a backward pass too, is an error here.
	Update(factor float32, rate float64) error
}

// SnapshotStore is a Store whose parameters and moments can be saved in a snapshot.
type SnapshotStore interface {
	// State copies the parameters and what the optimizer keeps of them, always in the same order.
	State() ([]ParamState, error)
	// SetState restores what State returned. It returns an error, and changes nothing, where the state does not fit its
	// parameters.
	SetState(state []ParamState) error
}

// ParamState is a parameter and what the optimizer keeps of it.
type ParamState struct {
	Name   string
	Values []float32
	OptimizerState
}

// HostStore is a Store in the host's memory.
type HostStore struct {
	params    []*Param
	gradients Gradients
	optimizer Optimizer
	moved     []*Param       // parameters whose gradient was not zero in the last SumSquares
	tasks     *taskGradients // nil: one gradient for all tasks
	shards    *shardSums     // nil: a step has one
	rounds    bool           // gradients of shards are rounded to bfloat16
	placed    *placed        // nil: no parameters are shared with other processes
	average   *averages      // nil: none

	rates map[*Param]float64 // factors of the learning rate; 1 for all others
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
	if s.shards != nil {
		s.shards.at = 0
	}
	s.gradients.zeroAll()
	if s.tasks == nil {
		return
	}
	for _, own := range s.tasks.of {
		own.zero(s.tasks.shared)
	}
}

// SumSquares implements Store.
func (s *HostStore) SumSquares() (sum float64, err error) {
	var squares map[*Param]float64
	if s.placed != nil {
		if squares, err = s.placed.sumSquares(s.gradients); err != nil {
			return 0, err
		}
	}
	sum, s.moved = s.gradients.sumSquares(s.params, squares)
	return sum, nil
}

// Update implements Store.
func (s *HostStore) Update(factor float32, rate float64) error {
	for params := s.moved; len(params) > 0; {
		// consecutive parameters of one rate
		of, n := s.rateFactor(params[0]), 1
		for n < len(params) && s.rateFactor(params[n]) == of {
			n++
		}
		s.optimizer.Step(s.placed.ownParts(params[:n], s.gradients), s.gradients, factor, rate*of)
		params = params[n:]
	}
	s.placed.forget(s.gradients)
	s.average.follow()
	return nil
}

// SetRates makes Update multiply the learning rate of parameters by factors of their own.
func (s *HostStore) SetRates(factors map[*Param]float64) { s.rates = factors }

// rateFactor returns the factor of w's learning rate.
func (s *HostStore) rateFactor(w *Param) float64 {
	if factor, ok := s.rates[w]; ok {
		return factor
	}
	return 1
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
func (s *HostStore) State() ([]ParamState, error) { return s.StateIn(nil), nil }

// StateIn is State with the memory of copies.
func (s *HostStore) StateIn(copies *Copies) []ParamState {
	var all []ParamState
	for _, w := range s.Params() {
		state := s.state(w)
		state.Slots = slices.Clone(state.Slots)
		for i := range state.Slots {
			state.Slots[i].Values = copies.Clone(state.Slots[i].Values)
		}
		values, mean := s.average.own(w)
		state.Slots = append(state.Slots, s.average.slots(w, mean, copies)...)
		all = append(all, ParamState{w.Name, copies.Clone(values), state})
	}
	return all
}

// SetState implements SnapshotStore.
func (s *HostStore) SetState(state []ParamState) error {
	params := s.Params()
	if err := CheckState(params, state); err != nil {
		return err
	}
	ofOptimizer := make([]OptimizerState, len(state))
	for i, p := range state {
		ofOptimizer[i] = p.OptimizerState
	}
	means, err := s.average.split(ofOptimizer)
	if err != nil {
		return err
	}
	if err := s.setState(params, ofOptimizer); err != nil {
		return err
	}
	s.UseAverage(false)
	s.average.set(means)
	for i, w := range params {
		copy(w.Data, state[i].Values)
		w.Changed()
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
	}
	return nil
}
