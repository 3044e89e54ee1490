package nn

// Reducer sums numbers over the processes that train one model together, each on its part of a step's batches. All
// processes call its methods in the same order, with equally many numbers. Gradients that are kept by task are passed task by task,
// each task with a Wait of its own.
type Reducer interface {
	// Rank returns the number of this process, from 0, and how many processes there are.
	Rank() (rank, processes int)
	// Sum replaces each value by its sum over all processes: labelled units before the backward pass, losses after it,
	// and after that the squared norms of the heads' gradients where a step measures them.
	Sum(values []float64) error
	// Ready receives each parameter whose gradient is final, and the gradient, once per step and always in the same
	// order: those of heads and fusion, then the encoder's from its last layer down. It may replace the gradient by its
	// sum over all processes while the backward pass continues; the caller does not use the gradient until Wait
	// returns.
	Ready(w *Param, gradient []float32)
	// Wait returns when all gradients passed to Ready since its last call hold their sums.
	Wait() error
}
