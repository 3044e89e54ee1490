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

// Dots implements TaskStore.
func (s *HostStore) Dots() [][]float64 {
	dots := make([][]float64, len(s.tasks.of))
	for t := range dots {
		dots[t] = make([]float64, len(dots))
		for u := range t + 1 {
			for _, w := range s.tasks.shared {
				dots[t][u] += s.tasks.of[t].dot(w, s.tasks.of[u])
			}
			dots[u][t] = dots[t][u]
		}
	}
	return dots
}

// Combine implements TaskStore.
func (s *HostStore) Combine(factors []float64) {
	for t, factor := range factors {
		if factor == 0 {
			continue
		}
		for _, w := range s.tasks.shared {
			s.gradients.addScaled(w, s.tasks.of[t], float32(factor))
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

// dot returns the dot product of w's gradients in g and h.
func (g Gradients) dot(w *Param, h Gradients) float64 {
	a, b := g.of[w], h.of[w]
	sum := 0.0
	a.eachRow(w, func(row, from, to int) {
		if b.touched == nil || b.touched[row] != 0 {
			sum += dot64(a.values[from:to], b.values[from:to])
		}
	})
	return sum
}

// addScaled adds factor times w's gradient in h to that in g.
func (g Gradients) addScaled(w *Param, h Gradients, factor float32) {
	to, from := g.of[w], h.of[w]
	if from.touched != nil && to.touched == nil {
		to.touched = make([]float32, len(from.touched))
		mark(to.touched, to.values)
	}
	from.eachRow(w, func(row, begin, end int) {
		addScaled(to.values[begin:end], from.values[begin:end], factor)
		if to.touched != nil {
			to.touched[row] = 1
		}
	})
}

// eachRow calls do for each row of a gradient that may not be zero, with its number and the range of its values.
func (d *paramGradient) eachRow(w *Param, do func(row, from, to int)) {
	length := w.rowLength()
	for row := range len(d.values) / length {
		if d.touched == nil || d.touched[row] != 0 {
			do(row, row*length, (row+1)*length)
		}
	}
}

// dot64 returns Σ a·b in float64, as four independent sums, which run in parallel.
func dot64(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
	}
	for i, v := range a {
		s0 += float64(v) * float64(b[i])
	}
	return s0 + s1 + s2 + s3
}
