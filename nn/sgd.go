package nn

import "github.com/jenga-nlp/jenga/internal/kernel"

// SGD updates parameters by gradient descent with momentum, as torch.optim.SGD does. Without momentum it keeps nothing
// of a parameter.
type SGD struct {
	Momentum    float64 // factor of the velocity; 0: there is none
	Dampening   float64 // the gradient is multiplied by 1 minus it where it is added to a velocity
	Nesterov    bool    // the momentum is applied before the gradient (Sutskever et al. 2013)
	WeightDecay float64 // times a parameter that decays is added to its gradient

	velocities slotted
}

var _ Optimizer = (*SGD)(nil)

// Step implements Optimizer.
func (s *SGD) Step(params []*Param, gradients Gradients, factor float32, rate float64) {
	for _, w := range params {
		g := gradients.of[w]
		if g == nil || w.Frozen {
			continue
		}
		k := kernel.SGD{Rate: rate, Momentum: s.Momentum, Dampening: s.Dampening, Nesterov: s.Nesterov}
		if w.Decay {
			k.Decay = s.WeightDecay
		}
		w.Changed()
		if s.Momentum == 0 {
			k.Step(w.Data, nil, g.values, factor, false)
			continue
		}
		state := s.velocities.of(w, s.slots)
		k.Step(w.Data, state.slots[0], g.values, factor, state.steps == 1)
	}
}

// slots returns the slots of a parameter.
func (s *SGD) slots(w *Param) []slotSize {
	if s.Momentum == 0 {
		return nil
	}
	return []slotSize{{"velocity", len(w.Data)}}
}

// StateSize returns how many numbers it keeps of a parameter.
func (s *SGD) StateSize(w *Param) int { return sizeOf(s.slots(w)) }

// State implements Optimizer.
func (s *SGD) State(w *Param) OptimizerState { return s.velocities.state(w, s.slots) }

// SetState implements Optimizer.
func (s *SGD) SetState(params []*Param, states []OptimizerState) error {
	return s.velocities.set(params, states, s.slots)
}
