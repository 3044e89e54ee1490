package nn

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Gradients holds a gradient for each parameter that learns.
//
// For a table that AddRows adds to, such as word embeddings, it also records which rows have a gradient, so that
// zeroing, norm and update read those alone.
//
// The encoder reports the parameters whose gradients are final by Ready, so that what sums gradients over processes may
// begin before the backward pass ends.
type Gradients struct {
	of     map[*Param]*paramGradient
	memory []float32      // of the gradients that HostStore.Place has moved
	ready  func(w *Param) // nil: Ready does nothing
}

type paramGradient struct {
	values []float32 // as many as the parameter has
	// touched has a number for each row of a table, 0 where its gradient is zero; nil where this is not recorded.
	touched []float32
}

// NewGradients makes zero gradients for those of params that are not frozen.
func NewGradients(params []*Param) Gradients {
	g := Gradients{of: map[*Param]*paramGradient{}}
	for _, w := range params {
		if !w.Frozen {
			g.of[w] = &paramGradient{values: kernel.Floats(len(w.Data))}
		}
	}
	return g
}

// Has reports whether w takes a gradient now.
func (g Gradients) Has(w *Param) bool { return g.taken(w) != nil }

// taken returns w's gradient, nil where w takes none now.
func (g Gradients) taken(w *Param) *paramGradient {
	if w.Later {
		return nil
	}
	return g.of[w]
}

// Observed returns the same gradients, whose Ready calls ready with each parameter.
func (g Gradients) Observed(ready func(w *Param)) Gradients { g.ready = ready; return g }

// Ready reports that nothing more is added to the gradients of params in this backward pass. An encoder's Backward
// calls it as each of its levels is done, always in the same order; what it does not report is ready when it returns.
func (g Gradients) Ready(params ...*Param) {
	if g.ready == nil {
		return
	}
	for _, w := range params {
		if g.Has(w) {
			g.ready(w)
		}
	}
}

// Of returns w's gradient, of w's length, nil where w takes none. The caller may add to any of its values.
func (g Gradients) Of(w *Param) []float32 {
	d := g.taken(w)
	if d == nil {
		return nil
	}
	for r := range d.touched {
		d.touched[r] = 1
	}
	return d.values
}

// AddRows adds each row of x [T D] to the row of w's gradient [V D] that rows names, first to last, if w takes one.
func (g Gradients) AddRows(w *Param, x []float32, rows []int32) {
	d := g.taken(w)
	if d == nil {
		return
	}
	d.record(w.Shape[0])
	for _, r := range rows {
		d.touched[r] = 1
	}
	kernel.Scatter(d.values, x, rows, w.rowLength())
}

// record makes touched, unless rows are recorded already.
func (d *paramGradient) record(rows int) {
	if d.touched == nil {
		d.touched = d.notZero(rows)
	}
}

// notZero returns 1 for each row that is not zero.
func (d *paramGradient) notZero(rows int) []float32 {
	touched, length := make([]float32, rows), len(d.values)/rows
	for r := range touched {
		if slices.ContainsFunc(d.values[r*length:(r+1)*length], func(v float32) bool { return v != 0 }) {
			touched[r] = 1
		}
	}
	return touched
}

func (g Gradients) zeroAll() {
	for w, d := range g.of {
		d.zero(w)
	}
}

func (d *paramGradient) zero(w *Param) {
	d.parts(w, kernel.Clear)
	clear(d.touched)
}

// parts calls do for all values that may not be zero: those of touched rows, where they are recorded.
func (d *paramGradient) parts(w *Param, do func([]float32)) {
	if d.touched == nil {
		do(d.values)
		return
	}
	length := w.rowLength()
	for r, touched := range d.touched {
		if touched != 0 {
			do(d.values[r*length : (r+1)*length])
		}
	}
}

// sumSquares returns the sum of the squares of params' gradients, in the order of params, so that it is the same each
// time, and those of params whose gradient is not zero. Those of some params are known.
func (g Gradients) sumSquares(params []*Param, known map[*Param]float64) (sum float64, moved []*Param) {
	for _, w := range params {
		d := g.of[w]
		if d == nil {
			continue
		}
		squares, is := known[w]
		if !is {
			squares = kernel.SumSquaresOfRows(d.values, w.rowLength(), d.touched)
		}
		if squares != 0 { // only the square of 0 is 0, see SumSquaresOfRows
			moved = append(moved, w)
		}
		sum += squares
	}
	return sum, moved
}

// ClipFactor returns the factor that makes a gradient of a norm at most limit, as torch's clip_grad_norm_ has it.
// Where the norm is not finite the factor is 1: the caller checks the norm.
func ClipFactor(norm, limit float64) float32 {
	if factor := limit / (norm + 1e-6); factor < 1 && !math.IsInf(norm, 0) {
		return float32(factor)
	}
	return 1
}

// Touched returns a number for each row of a table's gradient, 0 where it is zero, and whether they were recorded.
func (g Gradients) Touched(w *Param) (touched []float32, recorded bool) {
	d := g.of[w]
	if d.touched != nil {
		return slices.Clone(d.touched), true
	}
	return d.notZero(w.Shape[0]), false
}

// Rows returns the rows of w's gradient where touched is not 0, one after the other, in memory, which must have space
// for all of them.
func (g Gradients) Rows(w *Param, touched, memory []float32) []float32 {
	rows, n := memory[:0], w.rowLength()
	for r, t := range touched {
		if t != 0 {
			rows = append(rows, g.of[w].values[r*n:(r+1)*n]...)
		}
	}
	return rows
}

// SetRows replaces the rows of w's gradient where touched is not 0; all others must be zeros. It records them if record
// is true.
func (g Gradients) SetRows(w *Param, touched, rows []float32, record bool) {
	d, n := g.of[w], w.rowLength()
	for r, t := range touched {
		if t != 0 {
			copy(d.values[r*n:(r+1)*n], rows)
			rows = rows[n:]
		}
	}
	if record {
		d.touched = append(d.touched[:0], touched...)
	}
}

// Values returns w's gradient, whose rows that are touched stay as they are.
func (g Gradients) Values(w *Param) []float32 { return g.of[w].values }

func (g Gradients) add(w *Param, h Gradients) {
	to, from := g.of[w], h.of[w]
	if from.touched == nil && to.touched == nil {
		kernel.Add(to.values, from.values)
		return
	}
	rows := max(len(from.touched), len(to.touched))
	from.record(rows) // the texts of its shards may have been none
	to.record(rows)
	for row := range rows {
		to.addRow(w, row, from, 1)
	}
}

type taskGradients struct {
	shared []*Param
	of     []Gradients // by task: own gradients of shared, the store's of all others
	at     int         // the task whose gradients are added to
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

// combine adds Σ factors[t]·g[t], g[t] being w's gradient of task t, to the gradient to: row by row, so that each is
// written once.
func (s *taskGradients) combine(w *Param, to *paramGradient, factors []float64) {
	for t, of := range s.of {
		if rows := len(of.of[w].touched); rows > 0 && factors[t] != 0 {
			to.record(rows)
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
