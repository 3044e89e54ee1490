package nn

import (
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// TaskStore is a Store that keeps the gradients of shared parameters by task until they are combined. A weighting needs
// only their dot products: each combination is Σ factors[t]·g[t].
type TaskStore interface {
	// SelectTask makes backward passes add to task t's gradients of the shared parameters, until it is called again;
	// all other parameters have one gradient.
	SelectTask(t int)
	// Dots returns the dot products g[t]·g[u] of all tasks' gradients over the shared parameters.
	Dots() [][]float64
	// Combine makes Σ factors[t]·g[t] the gradient of the shared parameters.
	Combine(factors []float64)
}

// taskGradients are a HostStore's gradients by task.
type taskGradients struct {
	shared []*Param
	of     []Gradients // by task: own gradients of shared, the store's of all others
	at     int         // the task whose gradients are added to
}

var _ TaskStore = (*HostStore)(nil)

// SeparateTasks makes zero gradients for each of so many tasks, of those of shared that learn.
func (s *HostStore) SeparateTasks(tasks int, shared []*Param) {
	learn := slices.DeleteFunc(slices.Clone(shared), func(w *Param) bool { return !s.gradients.Has(w) })
	t := &taskGradients{shared: learn}
	for range tasks {
		t.of = append(t.of, s.gradients.withOwn(t.shared))
	}
	s.tasks = t
}

// SelectTask implements TaskStore.
func (s *HostStore) SelectTask(t int) { s.tasks.at = t }

// TaskGradients returns task t's gradients.
func (s *HostStore) TaskGradients(t int) Gradients { return s.tasks.of[t] }

// Shared returns the parameters whose gradients are kept by task.
func (s *HostStore) Shared() []*Param { return s.tasks.shared }

// Dots implements TaskStore. Goroutines share the parameters, whose sums are added in their order.
func (s *HostStore) Dots() [][]float64 {
	tasks, shared := len(s.tasks.of), s.tasks.shared
	sums := make([]float64, len(shared)*tasks*tasks) // [P T T]
	kernel.Parallel(len(shared), 1, func(i, _ int) {
		s.tasks.dots(shared[i], sums[i*tasks*tasks:(i+1)*tasks*tasks])
	})
	dots := make([][]float64, tasks)
	for t := range dots {
		dots[t] = make([]float64, tasks)
		for u := range t + 1 {
			for i := range shared {
				dots[t][u] += sums[(i*tasks+t)*tasks+u]
			}
			dots[u][t] = dots[t][u]
		}
	}
	return dots
}

// dots adds to sums [T T] the dot products of w's gradients of each task and those up to its own: row by row, so that
// each is read once.
func (s *taskGradients) dots(w *Param, sums []float64) {
	for row := range len(w.Data) / w.rowLength() {
		for t, of := range s.of {
			x := of.of[w].row(w, row)
			if x == nil {
				continue
			}
			for u, other := range s.of[:t+1] {
				if y := other.of[w].row(w, row); y != nil {
					sums[t*len(s.of)+u] += kernel.Dot64(x, y)
				}
			}
		}
	}
}

// Combine implements TaskStore. Goroutines share the parameters.
func (s *HostStore) Combine(factors []float64) {
	kernel.Parallel(len(s.tasks.shared), 1, func(i, _ int) {
		w := s.tasks.shared[i]
		s.tasks.combine(w, s.gradients.of[w], factors)
	})
}

// combine adds Σ factors[t]·g[t], g[t] being w's gradient of task t, to the gradient to: row by row, so that each is
// written once.
func (s *taskGradients) combine(w *Param, to *paramGradient, factors []float64) {
	for t, of := range s.of {
		if factors[t] != 0 {
			to.recordRowsLike(of.of[w])
		}
	}
	for row := range len(w.Data) / w.rowLength() {
		for t, of := range s.of {
			if factors[t] != 0 {
				to.addRow(w, row, of.of[w], float32(factors[t]))
			}
		}
	}
}

// withOwn returns the gradients g, with new zero gradients for params, all of which g has.
func (g Gradients) withOwn(params []*Param) Gradients {
	own := Gradients{of: map[*Param]*paramGradient{}}
	for w, d := range g.of {
		own.of[w] = d
	}
	for _, w := range params {
		own.of[w] = &paramGradient{values: kernel.Floats(len(w.Data))}
	}
	return own
}

// row returns a row of the gradient of w, nil where it is zero because nothing has added to it.
func (d *paramGradient) row(w *Param, row int) []float32 {
	if d.touched != nil && d.touched[row] == 0 {
		return nil
	}
	length := w.rowLength()
	return d.values[row*length : (row+1)*length]
}

// recordRowsLike records which rows have a gradient if from does.
func (d *paramGradient) recordRowsLike(from *paramGradient) {
	if from.touched != nil && d.touched == nil {
		d.touched = make([]float32, len(from.touched))
		mark(d.touched, d.values)
	}
}

// addRow adds factor times a row of from.
func (d *paramGradient) addRow(w *Param, row int, from *paramGradient, factor float32) {
	x := from.row(w, row)
	if x == nil {
		return
	}
	if d.touched != nil {
		d.touched[row] = 1
	}
	addScaled(d.row(w, row), x, factor)
}
