package nn

// Optimizer updates parameters by their gradients. A snapshot holds what it keeps of a parameter from step to step.
type Optimizer interface {
	// Step updates params by their gradients times factor at a learning rate. A parameter without a gradient, or
	// frozen, is not changed.
	Step(params []*Param, gradients Gradients, factor float32, rate float64)
	// State returns what is kept of w. The slots' values are the optimizer's own: the caller copies them.
	State(w *Param) OptimizerState
	// SetState replaces what is kept of each of params. It returns an error, and changes nothing, where a state is not
	// one that State returns for such a parameter.
	SetState(params []*Param, states []OptimizerState) error
}

// OptimizerState is what an optimizer keeps of a parameter.
type OptimizerState struct {
	Steps int    // updates of the parameter
	Slots []Slot // always the same, in the same order; none before the first update
}

// Slot is a vector that an optimizer keeps of a parameter, such as the running mean of its gradient.
type Slot struct {
	Name   string
	Values []float32
}
