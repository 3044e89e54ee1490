package nn

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Gradients holds a gradient for each parameter that learns, of its parameter's length. A parameter without an entry
// takes none.
//
// Of a table that AddRows adds to, it also knows which rows have a gradient, so that zeroing, norm and update read those
// alone. Who adds to such a table's gradient in another way, in the steps of the same Gradients, asks for it by Whole.
type Gradients map[*Param][]float32

// NewGradients makes zero gradients for those of params that are not frozen.
func NewGradients(params []*Param) Gradients {
	g := Gradients{}
	for _, w := range params {
		if !w.Frozen {
			g[w] = kernel.Floats(len(w.Data))
		}
	}
	return g
}

// AddRows adds each row of x [T D] to the row of w's gradient [V D] that rows names, first to last, if w takes one.
func (g Gradients) AddRows(w *Param, x []float32, rows []int32) {
	d := g[w]
	if d == nil {
		return
	}
	touched := g.touched(w)
	if touched == nil {
		touched = make([]float32, w.Shape[0])
		mark(touched, d)
		g[w.rows] = touched
	}
	for _, r := range rows {
		touched[r] = 1
	}
	kernel.Scatter(d, x, rows, w.rowLength())
}

// mark sets touched to 1 for each row of d that is not zero.
func mark(touched, d []float32) {
	length := len(d) / len(touched)
	for r := range touched {
		for _, v := range d[r*length : (r+1)*length] {
			if v != 0 {
				touched[r] = 1
				break
			}
		}
	}
}

// Whole returns w's gradient for who may add to any of its rows; nil where w takes none.
func (g Gradients) Whole(w *Param) []float32 {
	touched := g.touched(w)
	for r := range touched {
		touched[r] = 1
	}
	return g[w]
}

// touched returns a number for each row of w's gradient that is 0 where the row is; nil where only the gradient tells.
func (g Gradients) touched(w *Param) []float32 {
	if w.rows == nil {
		return nil
	}
	return g[w.rows]
}

// Zero clears all gradients.
func (g Gradients) Zero() {
	for w, d := range g {
		length := w.rowLength()
		for r, touched := range g.touched(w) {
			if touched != 0 {
				clear(d[r*length : (r+1)*length])
			}
		}
	}
	for w, d := range g {
		if g.touched(w) == nil {
			kernel.Clear(d) // of a table, which rows were touched
		}
	}
}

// Clip returns the norm of the gradients of all params together; the factor that makes it at most limit, as torch's
// clip_grad_norm_ has it, for Step to multiply them with; and those of params whose gradient is not zero. Where the norm
// is not finite the factor is 1: the caller sees it.
func Clip(params []*Param, gradients Gradients, limit float64) (norm float64, factor float32, moved []*Param) {
	sum := 0.0
	for _, w := range params { // in their order, so that the sum is the same each time
		d := gradients[w]
		if len(d) == 0 {
			continue
		}
		squares := kernel.SumSquaresOfRows(d, w.rowLength(), gradients.touched(w))
		if squares != 0 { // no square of a number but 0 is 0, see there
			moved = append(moved, w)
		}
		sum += squares
	}
	norm = math.Sqrt(sum)
	if scale := limit / (norm + 1e-6); scale < 1 && !math.IsInf(norm, 0) {
		return norm, float32(scale), moved
	}
	return norm, 1, moved
}
