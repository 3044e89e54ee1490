package kernel

import (
	"math"
	"sync"
)

// Attention is multi-head attention, softmax(Q·Kᵀ/√d)·V (Vaswani et al. 2017), of each text of a batch over its own
// rows. Its memory is linear in the length of a text: only the weights of a block of queries are in memory at a time,
// and Backward computes them again.
type Attention struct {
	Starts  []int   // [B+1] text b is rows Starts[b]:Starts[b+1]
	Heads   int     // a divisor of Width
	Width   int     // D, of all heads together
	Dropout float64 // dropout rate of the weights: 0 except in training
	Key     uint64  // of the dropout's mask
	// Window limits a query to the keys that are at most so many rows before or after it, for which time grows with
	// the length of a text, not its square; 0: no limit.
	Window int
	// Bias [Heads 2·Reach−1] is added to the logits: to that of query i and key j the value j−i+Reach−1 of the head's
	// row. nil: nothing. Backward adds the gradient of Bias to DBias, unless that is nil.
	Bias, DBias []float32
	Reach       int // no text has more tokens

	partial []float32 // see partialOf
}

// Forward writes to out the attention of q, k and v, [T D] each, and to normalizers [Heads T] the logarithm of each
// softmax's denominator, for Backward. normalizers may be nil.
func (a Attention) Forward(out, normalizers, q, k, v []float32) {
	a.check(out, q, k, v)
	attentionForward.run((len(a.Starts)-1)*a.Heads, 1,
		attentionArgs{a: a, out: out, normalizers: normalizers, q: q, k: k, v: v})
}

// Backward writes to dq, dk and dv the gradients of q, k and v, given the gradient dOut of Forward's result out, and
// the normalizers that Forward wrote.
func (a Attention) Backward(dq, dk, dv, q, k, v, out, normalizers, dOut []float32) {
	a.check(dq, dk, dv, q, k, v, out, dOut)
	if a.DBias != nil {
		partial := biasSums.Get().(*memory)
		defer biasSums.Put(partial)
		a.partial = partial.of(2 * a.Starts[len(a.Starts)-1] * a.Heads)
		defer a.addPartial()
	}
	attentionBackward.run((len(a.Starts)-1)*a.Heads, 1,
		attentionArgs{a: a, out: out, normalizers: normalizers, q: q, k: k, v: v, dq: dq, dk: dk, dv: dv, dOut: dOut})
}

// Weights writes the weights of a text of t tokens, before dropout, to out [Heads t t]; zeros outside the windows.
func (a Attention) Weights(out, q, k []float32, text int) {
	first, t, d := a.Starts[text], a.Starts[text+1]-a.Starts[text], a.Width/a.Heads
	Parallel(a.Heads, 1, func(head, _ int) {
		keys := make([]float32, d*t) // [d t]
		transposeTo(keys, t, k[first*a.Width+head*d:], a.Width, t, d)
		for i := range t {
			lo := i - i%weightRows
			from, to := a.reach(t, lo, min(weightRows, t-lo))
			row := out[(head*t+i)*t:][:t]
			clear(row)
			weights := row[from:to]
			for l, x := range q[(first+i)*a.Width+head*d:][:d] {
				addScaledPlain(weights, keys[l*t+from:l*t+to], x*a.scale())
			}
			a.mask(weights, head, i, from)
			Softmax(weights)
		}
	})
}

// weightRows is the number of queries whose weights are of the same keys, those that one of them has in its window.
const weightRows = 16

// check panics if the states have fewer rows than the texts.
func (a *Attention) check(states ...[]float32) {
	if a.Heads < 1 || a.Width%a.Heads != 0 {
		panic("kernel: attention heads do not divide the width")
	}
	for b := range len(a.Starts) - 1 {
		if a.Bias != nil && (a.Starts[b+1]-a.Starts[b] > a.Reach || len(a.Bias) < a.Heads*(2*a.Reach-1)) {
			panic("kernel: attention with a bias for shorter texts")
		}
	}
	for _, s := range states {
		if len(s) < a.Starts[len(a.Starts)-1]*a.Width {
			panic("kernel: attention over states of fewer rows than the texts have")
		}
	}
}

// reach returns the keys from:to that the queries lo:lo+n of a text of t tokens have in their windows together.
func (a *Attention) reach(t, lo, n int) (from, to int) {
	if a.Window == 0 {
		return 0, t
	}
	return max(0, lo-a.Window), min(t, lo+n+a.Window)
}

// mask adds the bias to the logits of a head's query, and sets those outside its window to -Inf. logits are those of
// the keys from first on.
func (a *Attention) mask(logits []float32, head, query, first int) {
	if a.Bias != nil {
		use.addScaled(logits, a.Bias[head*(2*a.Reach-1)+first-query+a.Reach-1:][:len(logits)], 1)
	}
	if a.Window == 0 {
		return
	}
	outside := float32(math.Inf(-1))
	for j := range min(len(logits), query-a.Window-first) {
		logits[j] = outside
	}
	for j := max(0, query+a.Window+1-first); j < len(logits); j++ {
		logits[j] = outside
	}
}

// scale is 1/√d.
func (a *Attention) scale() float32 { return float32(1 / math.Sqrt(float64(a.Width/a.Heads))) }

type attentionArgs struct {
	a                Attention
	out, normalizers []float32
	q, k, v          []float32
	dq, dk, dv, dOut []float32
}

// biasSums holds the memory of the gradients of Attention.Bias by each text and head, which are added in the order of
// the texts, so that no bit depends on the number of threads.
var biasSums = sync.Pool{New: func() any { return new(memory) }}

// partialOf returns the part of a.partial for a text and head, [2t-1] for the distances from -(t-1) on; nil where no
// gradient is computed.
func (a *Attention) partialOf(text, head int) []float32 {
	t := a.Starts[text+1] - a.Starts[text]
	if a.partial == nil || t == 0 {
		return nil
	}
	return a.partial[2*(a.Starts[text]*a.Heads+head*t):][:2*t-1]
}

// addDistances adds the gradient at the logits of a query, whose keys are those from first on, to partial.
func addDistances(partial, d []float32, query, first int) {
	if partial != nil {
		use.addScaled(partial[first-query+len(partial)/2:][:len(d)], d, 1)
	}
}

// addPartial adds the sums of all texts to DBias.
func (a *Attention) addPartial() {
	for text := range len(a.Starts) - 1 {
		t := a.Starts[text+1] - a.Starts[text]
		for head := range a.Heads {
			if sums := a.partialOf(text, head); sums != nil {
				use.addScaled(a.DBias[head*(2*a.Reach-1)+a.Reach-t:][:len(sums)], sums, 1)
			}
		}
	}
}

// Attention in tiles, with an online softmax (Dao et al. 2022): a block of queries by a block of keys at a time.
const (
	queryBlock = 48
	keyBlock   = 512
)

// headTile is the state of attention of one head over one text: the columns of [T D] states from at on, in rows of
// width values.
type headTile struct {
	tiles       *tiles
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
	h.tiles = &use.tiles[Float32]
	h.cols = h.wide(h.d)
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
	return from - from%h.tiles.panel, to
}

// wide returns n columns, rounded up to whole panels.
func (h *headTile) wide(n int) int { return pieces(n, h.tiles.panel, 1) * h.tiles.panel }

// block returns memory for the scores of a block of queries and keys, with a row stride of blockRow.
func (h *headTile) block(m *memory) []float32 { return m.of(queryBlock * h.blockRow()) }

func (h *headTile) blockRow() int { return h.wide(min(h.t, keyBlock)) }

// packColumns lays out the head's part of x [T D], times scale, as the panels of a [d t].
func (h *headTile) packColumns(m *memory, x []float32, scale float32) []float32 {
	out, width := m.of(h.wide(h.t)*h.d), h.tiles.panel
	for j := 0; j < h.t; j += width {
		panel, rows := out[j*h.d:(j+width)*h.d], min(width, h.t-j)
		if rows < width {
			clear(panel)
		}
		transposeTo(panel, width, x[h.at+j*h.width:], h.width, rows, h.d)
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
	for j, width := 0, h.tiles.panel; j < h.cols; j += width {
		view.packPanel(out[j*n:(j+width)*n], width, 0, j, min(width, h.d-j))
	}
	return out
}

// score writes to out [n row] the products of the head's part of x [T D], rows lo:lo+n, with the columns j:j+m of
// packed columns.
func (h *headTile) score(out []float32, row int, x, columns []float32, lo, n, j, m int) {
	for p := 0; p < m; p += h.tiles.panel {
		panel := columns[(j+p)*h.d:][:h.d*h.tiles.panel]
		t := strip{tiles: h.tiles, c: out[p:], cRow: row, from: zeros[:], a: x[h.at+lo*h.width:], aRow: h.width,
			aCol: 1, panel: panel, k: h.d, next: panel}
		t.multiplyAll(n)
	}
}

// multiply adds a·b to c [n cRow]: a [n m] has the strides aRow and aCol, b is the rows j:j+m of panels of [depth d].
func (h *headTile) multiply(c []float32, cRow int, a []float32, aRow, aCol int, b []float32, depth, j, n, m int) {
	for p := 0; p < h.cols; p += h.tiles.panel {
		panel := b[p*depth+j*h.tiles.panel:][:m*h.tiles.panel]
		t := strip{tiles: h.tiles, c: c[p:], cRow: cRow, from: c[p:], fromRow: cRow, a: a, aRow: aRow, aCol: aCol,
			panel: panel, k: m, next: panel}
		t.multiplyAll(n)
	}
}

// multiplyAll multiplies n rows, of c and of a.
func (t *strip) multiplyAll(n int) {
	for i := 0; i < n; {
		rows, count := t.tiles.next(n - i)
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
