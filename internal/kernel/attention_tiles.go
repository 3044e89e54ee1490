package kernel

import (
	"math"
	"sync"
)

// Attention in tiles, with an online softmax (Dao et al. 2022): a block of queries by a block of keys at a time.
const (
	queryBlock = 48
	keyBlock   = 512
)

// headTile is the state of attention of one head over one text: the columns of [T D] states from at on, in rows of
// width values.
type headTile struct {
	t, d, width int
	at          int // of the text's first row and the head's first column
	cols        int // d, rounded up to whole panels
	scale       float32
	mask        mask
	drops       bool

	keys, keyRows, values, queryRows, dOutRows memory // panels
	scores, dropped, dScores                   memory // [queryBlock keyBlock]
	context, dKeys, dValues                    memory // [queryBlock cols], [t cols], [t cols]
	top, sum                                   [queryBlock]float32
}

var headTiles = sync.Pool{New: func() any { return new(headTile) }}

// open sets h to a unit, one head of one text.
func (h *headTile) open(a *Attention, unit int) {
	b, head := unit/a.Heads, unit%a.Heads
	h.t, h.d, h.width = a.Starts[b+1]-a.Starts[b], a.Width/a.Heads, a.Width
	h.at = a.Starts[b]*a.Width + head*h.d
	h.cols = pieces(h.d, use.panel, 1) * use.panel
	h.scale = a.scale()
	h.mask, h.drops = newMask(a.Key, a.Dropout).of(unit), a.Dropout > 0
}

var attentionForward = tiled(func(x *attentionArgs, unit, _ int) {
	h := headTiles.Get().(*headTile)
	defer headTiles.Put(h)
	if h.open(&x.a, unit); h.t == 0 {
		return
	}
	keys := h.packColumns(&h.keys, x.k, h.scale)    // panels of [d t]
	values := h.packRows(&h.values, x.v, 0, h.t)    // panels of [t d]
	scores, row := h.block(&h.scores), h.blockRow() // [n row]
	context := h.context.of(queryBlock * h.cols)
	for lo := 0; lo < h.t; lo += queryBlock {
		n := min(queryBlock, h.t-lo)
		clear(context[:n*h.cols])
		for i := range n {
			h.top[i], h.sum[i] = float32(math.Inf(-1)), 0
		}
		from, to := h.reach(&x.a, lo, n)
		for j := from; j < to; j += keyBlock {
			m := min(keyBlock, to-j)
			h.score(scores, row, x.q, keys, lo, n, j, m)
			for i := range n {
				s := scores[i*row:][:m]
				x.a.mask(s, unit%x.a.Heads, lo+i, j)
				top := max(h.top[i], use.maximum(s))
				if j > from { // the sums so far were computed with another maximum
					shrink := float32(math.Exp(float64(h.top[i] - top)))
					h.sum[i] *= shrink
					use.scale(context[i*h.cols:(i+1)*h.cols], shrink)
				}
				h.top[i] = top
				h.sum[i] += use.exps(s, top)
				if h.drops {
					h.mask.apply(s, s, (lo+i)*h.t+j)
				}
			}
			h.multiply(context, h.cols, scores, row, 1, values, h.t, j, n, m)
		}
		for i := range n {
			s := context[i*h.cols:][:h.d]
			use.scale(s, 1/h.sum[i])
			copy(x.out[h.at+(lo+i)*h.width:], s)
		}
		if x.normalizers != nil {
			to := x.normalizers[unit%x.a.Heads*(len(x.q)/h.width)+h.at/h.width+lo:]
			for i := range n {
				to[i] = h.top[i] + float32(math.Log(float64(h.sum[i])))
			}
		}
	}
})

var attentionBackward = tiled(func(x *attentionArgs, unit, _ int) {
	h := headTiles.Get().(*headTile)
	defer headTiles.Put(h)
	if h.open(&x.a, unit); h.t == 0 {
		return
	}
	// panels of [d t], of [t d]
	keys, keyRows := h.packColumns(&h.keys, x.k, h.scale), h.packRows(&h.keyRows, x.k, 0, h.t)
	values := h.packColumns(&h.values, x.v, 1)                               // panels of [d t]
	dKeys, dValues := h.dKeys.zeros(h.t*h.cols), h.dValues.zeros(h.t*h.cols) // [t cols]
	scores, dropped, dScores, row := h.block(&h.scores), h.block(&h.dropped), h.block(&h.dScores), h.blockRow()
	dQueries := h.context.of(queryBlock * h.cols)
	partial := x.a.partialOf(unit/x.a.Heads, unit%x.a.Heads)
	clear(partial)
	normalizers := x.normalizers[unit%x.a.Heads*(len(x.q)/h.width)+h.at/h.width:]
	for lo := 0; lo < h.t; lo += queryBlock {
		n := min(queryBlock, h.t-lo)
		queryRows := h.packRows(&h.queryRows, x.q, lo, n) // panels of [n d]
		dOutRows := h.packRows(&h.dOutRows, x.dOut, lo, n)
		clear(dQueries[:n*h.cols])
		for i := range n { // Σ weight·(its gradient) over a row, with dropout or without
			at := h.at + (lo+i)*h.width
			h.sum[i] = use.dot(x.dOut[at:at+h.d], x.out[at:at+h.d])
		}
		from, to := h.reach(&x.a, lo, n)
		for j := from; j < to; j += keyBlock {
			m := min(keyBlock, to-j)
			h.score(scores, row, x.q, keys, lo, n, j, m)
			h.score(dScores, row, x.dOut, values, lo, n, j, m)
			weights := scores
			if h.drops {
				weights = dropped
			}
			for i := range n {
				s, d := scores[i*row:][:m], dScores[i*row:][:m]
				x.a.mask(s, unit%x.a.Heads, lo+i, j)
				use.exps(s, normalizers[lo+i])
				if h.drops {
					h.mask.apply(weights[i*row:], s, (lo+i)*h.t+j)
					h.mask.apply(d, d, (lo+i)*h.t+j)
				}
				use.softmaxGradient(d, s, h.sum[i])
				addDistances(partial, d, lo+i, j)
			}
			h.multiply(dValues[j*h.cols:], h.cols, weights, 1, row, dOutRows, n, 0, m, n)
			h.multiply(dKeys[j*h.cols:], h.cols, dScores, 1, row, queryRows, n, 0, m, n)
			h.multiply(dQueries, h.cols, dScores, row, 1, keyRows, h.t, j, n, m)
		}
		h.write(x.dq, dQueries, lo, n, h.scale)
	}
	h.write(x.dk, dKeys, 0, h.t, h.scale)
	h.write(x.dv, dValues, 0, h.t, 1)
})

// reach returns the keys of Attention.reach, from the first of a panel on. Each query has a key among the first
// keyBlock of them: the windows of a block of queries begin within queryBlock keys.
func (h *headTile) reach(a *Attention, lo, n int) (from, to int) {
	from, to = a.reach(h.t, lo, n)
	return from - from%use.panel, to
}

// block returns memory for the scores of a block of queries and keys, with a row stride of blockRow.
func (h *headTile) block(m *memory) []float32 { return m.of(queryBlock * h.blockRow()) }

func (h *headTile) blockRow() int {
	return pieces(min(h.t, keyBlock), use.panel, 1) * use.panel
}

// packColumns lays out the head's part of x [T D], times scale, as the panels of a [d t].
func (h *headTile) packColumns(m *memory, x []float32, scale float32) []float32 {
	panels := pieces(h.t, use.panel, 1)
	out := m.of(panels * h.d * use.panel)
	for j := range panels {
		panel, rows := out[j*h.d*use.panel:(j+1)*h.d*use.panel], min(use.panel, h.t-j*use.panel)
		if rows < use.panel {
			clear(panel)
		}
		transposeTo(panel, use.panel, x[h.at+j*use.panel*h.width:], h.width, rows, h.d)
	}
	if scale != 1 {
		use.scale(out, scale)
	}
	return out
}

// packRows lays out rows lo:lo+n of the head's part of x [T D] as the panels of a [n d].
func (h *headTile) packRows(m *memory, x []float32, lo, n int) []float32 {
	out := m.of(n * h.cols)
	view := Dense(x[h.at+lo*h.width:], h.width)
	for j := 0; j < h.cols; j += use.panel {
		view.packPanel(out[j*n:(j+use.panel)*n], 0, j, min(use.panel, h.d-j))
	}
	return out
}

// score writes to out [n row] the products of the head's part of x [T D], rows lo:lo+n, with the columns j:j+m of
// packed columns.
func (h *headTile) score(out []float32, row int, x, columns []float32, lo, n, j, m int) {
	for p := 0; p < m; p += use.panel {
		panel := columns[(j+p)*h.d:][:h.d*use.panel]
		t := tiles{c: out[p:], cRow: row, from: zeros[:], a: x[h.at+lo*h.width:], aRow: h.width, aCol: 1, panel: panel,
			k: h.d, next: panel}
		t.multiplyAll(n)
	}
}

// multiply adds a·b to c [n cRow]: a [n m] has the strides aRow and aCol, b is the rows j:j+m of panels of [depth d].
func (h *headTile) multiply(c []float32, cRow int, a []float32, aRow, aCol int, b []float32, depth, j, n, m int) {
	for p := 0; p < h.cols; p += use.panel {
		panel := b[p*depth+j*use.panel:][:m*use.panel]
		t := tiles{c: c[p:], cRow: cRow, from: c[p:], fromRow: cRow, a: a, aRow: aRow, aCol: aCol, panel: panel, k: m,
			next: panel}
		t.multiplyAll(n)
	}
}

// multiplyAll multiplies n rows, of c and of a.
func (t *tiles) multiplyAll(n int) {
	for i := 0; i < n; {
		rows, count := nextTiles(n - i)
		t.multiply(rows, count, i, i*t.aRow, rows*t.aRow)
		i += rows * count
	}
}

// write writes values [n cols], times scale, to rows lo:lo+n of the head's part of x [T D].
func (h *headTile) write(x, values []float32, lo, n int, scale float32) {
	if scale != 1 {
		use.scale(values[:n*h.cols], scale)
	}
	for i := range n {
		copy(x[h.at+(lo+i)*h.width:][:h.d], values[i*h.cols:])
	}
}
