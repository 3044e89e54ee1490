package nn

import "slices"

// Touched returns a number for each row of a table's gradient, 0 where it is zero, and whether they were recorded.
func (g Gradients) Touched(w *Param) (touched []float32, recorded bool) {
	d := g.of[w]
	if d.touched != nil {
		return slices.Clone(d.touched), true
	}
	touched = make([]float32, w.Shape[0])
	mark(touched, d.values)
	return touched, false
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
