package nn

import (
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// idleRows are the rows of a table that no batch has named since their mean was a copy of them: in updates by AdamW
// they only decay, all by the same factors, so that their means are a common multiple of them, and need not be updated.
// In a vocabulary they are most rows.
type idleRows struct {
	active []bool  // [V] the others, whose means are updated
	excess float32 // the mean of an idle row is 1 + excess times the row
}

// decay updates the means of idle rows, which have been multiplied by factor: with mean' = d·mean + (1-d)·row',
// row' = factor·row and mean = (1+e)·row, mean' = (1 + d·((1+e)/factor - 1))·row'.
func (r *idleRows) decay(d float64, factor float32) {
	r.excess = float32(d * ((1+float64(r.excess))/float64(factor) - 1))
}

// whole makes k, an update of all of w, update its mean too.
func (a *averages) whole(w *Param, k *kernel.AdamW) {
	if a == nil || a.of == nil {
		return
	}
	a.fill(w)
	delete(a.idle, w)
	k.Mean, k.Gain = a.of[w], a.gain()
	a.followed[w] = true
}

// begins reports whether the next update of w's rows decides which are idle.
func (a *averages) begins(w *Param) bool { return a != nil && a.of != nil && a.idle[w] == nil }

// rows makes k, an update of the active rows of w in which all others decay, update their means too. It returns the
// rows to update, which may be more: those that were ever active.
func (a *averages) rows(w *Param, active []bool, k *kernel.AdamW) []bool {
	if a == nil || a.of == nil {
		return active
	}
	idle := a.idle[w]
	length := w.rowLength()
	if idle == nil { // only rows whose means are still copies are idle
		idle = &idleRows{active: slices.Clone(active)}
		for r, is := range active {
			lo, hi := r*length, (r+1)*length
			idle.active[r] = is || !slices.Equal(a.of[w][lo:hi], w.Data[lo:hi])
		}
		a.idle[w] = idle
	}
	for r, is := range active {
		if is && !idle.active[r] {
			a.fillRows(w, length, r)
			idle.active[r] = true
		}
	}
	k.Mean, k.Gain = a.of[w], a.gain()
	idle.decay(a.decay, k.Factor())
	a.followed[w] = true
	return idle.active
}

// fill computes the means of w's idle rows.
func (a *averages) fill(w *Param) {
	idle := a.idle[w]
	if idle == nil {
		return
	}
	for r, active := range idle.active {
		if !active {
			a.fillRows(w, w.rowLength(), r)
		}
	}
}

// fillRows computes the mean of an idle row.
func (a *averages) fillRows(w *Param, length, r int) {
	factor := 1 + a.idle[w].excess
	mean := a.of[w][r*length : (r+1)*length]
	for i, v := range w.Data[r*length : (r+1)*length] {
		mean[i] = factor * v
	}
}
