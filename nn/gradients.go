package nn

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Gradients holds a gradient for each parameter that learns.
//
// Of a table that AddRows adds to, as of word embeddings, it also knows which rows have a gradient, so that zeroing, norm
// and update read those alone.
type Gradients struct{ of map[*Param]*paramGradient }

// paramGradient is the gradient of one parameter.
type paramGradient struct {
	values []float32 // as many as the parameter has
	// touched is a number for each row of a table, 0 where its gradient is zero; nil where only values tell.
	touched []float32
}

// NewGradients makes zero gradients for those of params that are not frozen.
func NewGradients(params []*Param) Gradients {
	g := Gradients{map[*Param]*paramGradient{}}
	for _, w := range params {
		if !w.Frozen {
			g.of[w] = &paramGradient{values: kernel.Floats(len(w.Data))}
		}
	}
	return g
}

// Takes tells whether w takes a gradient.
func (g Gradients) Takes(w *Param) bool { return g.of[w] != nil }

// Of returns w's gradient, of w's length, for who may add to any of its values; nil where w takes none.
func (g Gradients) Of(w *Param) []float32 {
	d := g.of[w]
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
	d := g.of[w]
	if d == nil {
		return
	}
	if d.touched == nil {
		d.touched = make([]float32, w.Shape[0])
		mark(d.touched, d.values)
	}
	for _, r := range rows {
		d.touched[r] = 1
	}
	kernel.Scatter(d.values, x, rows, w.rowLength())
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

// Zero clears all gradients.
func (g Gradients) Zero() {
	for w, d := range g.of {
		if d.touched == nil {
			kernel.Clear(d.values)
			continue
		}
		length := w.rowLength()
		for r, touched := range d.touched {
			if touched != 0 {
				clear(d.values[r*length : (r+1)*length])
			}
		}
		clear(d.touched)
	}
}

// Clip returns the norm of the gradients of all params together; the factor that makes it at most limit, as torch's
// clip_grad_norm_ has it, for Step to multiply them with; and those of params whose gradient is not zero. Where the norm
// is not finite the factor is 1: the caller sees it.
func Clip(params []*Param, gradients Gradients, limit float64) (norm float64, factor float32, moved []*Param) {
	sum := 0.0
	for _, w := range params { // in their order, so that the sum is the same each time
		d := gradients.of[w]
		if d == nil {
			continue
		}
		squares := kernel.SumSquaresOfRows(d.values, w.rowLength(), d.touched)
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
