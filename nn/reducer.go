package nn

// Reducer sums numbers over the processes that train one model together, each on batches of its own. All processes
// call its methods in the same order, with as many numbers. Gradients that are kept by task are handed over task by
// task, each task with a Wait of its own.
type Reducer interface {
	// Sum replaces each value by its sum over all processes: labelled units before the backward pass, losses after it.
	Sum(values []float64) error
	// Ready is given each parameter whose gradient is final, and the gradient, once a step and always in the same
	// order: those of heads and fusion, then the encoder's from its last layer down. It may replace the gradient by
	// its sum over all processes while the backward pass goes on; until Wait returns, nobody else touches it.
	Ready(w *Param, gradient []float32)
	// Wait returns when all gradients given to Ready since the last call hold their sums.
	Wait() error
}
