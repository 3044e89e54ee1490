package kernel

import "sync"

// queryRows is the number of queries whose weights are computed at a time.
const queryRows = 16

func (a Attention) forwardPlain(out, q, k, v []float32) {
	clear(out)
	a.units(0, len(a.Starts)-1, func(h *oneHead) {
		queries := h.columns(&h.queries, q, h.scale) // [d t]
		keys := h.columns(&h.keys, k, 1)             // [d t]
		values := h.rows(&h.values, v, 1)            // [t d]
		for lo := 0; lo < h.t; lo += queryRows {
			n := min(queryRows, h.t-lo)
			from, to := a.reach(h.t, lo, n)
			m := to - from
			weights := h.weights(&a, queries, keys, lo, n) // [n m]
			h.drop(weights, weights, lo, from, m)
			context := h.context.zeros(n * h.d) // [n d]
			for j := range m {
				blas.Sger(n, h.d, 1, weights[j:], m, values[(from+j)*h.d:], 1, context, h.d)
			}
			h.add(out, context, lo, 1)
		}
	})
}

func (a Attention) backwardPlain(dq, dk, dv, q, k, v, dOut []float32) {
	clear(dq)
	clear(dk)
	clear(dv)
	a.units(0, len(a.Starts)-1, func(h *oneHead) {
		queries, queryRow := h.columns(&h.queries, q, h.scale), h.rows(&h.queryRow, q, h.scale) // [d t] [t d]
		keys, keyRow := h.columns(&h.keys, k, 1), h.rows(&h.keyRow, k, 1)                       // [d t] [t d]
		values, dContext := h.columns(&h.values, v, 1), h.rows(&h.dContext, dOut, 1)            // [d t] [t d]
		partial := a.partialOf(h.text, h.head)
		clear(partial)
		dKeys, dValues := h.dKeys.zeros(h.t*h.d), h.dValues.zeros(h.t*h.d) // [t d] [t d]
		for lo := 0; lo < h.t; lo += queryRows {
			n := min(queryRows, h.t-lo)
			from, to := a.reach(h.t, lo, n)
			m := to - from
			weights := h.weights(&a, queries, keys, lo, n) // [n m]
			dropped := h.dropped.zeros(n * m)              // [n m]
			dWeights := h.dWeights.zeros(n * m)            // [n m]
			dQueries := h.context.zeros(n * h.d)           // [n d]
			d, query := dContext[lo*h.d:], queryRow[lo*h.d:]

			h.drop(dropped, weights, lo, from, m)
			addProduct(dValues[from*h.d:], dropped, d, m, n, h.d)
			for l := range h.d {
				blas.Sger(n, m, 1, d[l:], h.d, values[l*h.t+from:], 1, dWeights, m)
			}
			h.drop(dWeights, dWeights, lo, from, m)
			for i := range n {
				SoftmaxBackward(dWeights[i*m:(i+1)*m], weights[i*m:])
				addDistances(partial, dWeights[i*m:(i+1)*m], lo+i, from)
			}
			addProduct(dKeys[from*h.d:], dWeights, query, m, n, h.d)
			for j := range m {
				blas.Sger(n, h.d, 1, dWeights[j:], m, keyRow[(from+j)*h.d:], 1, dQueries, h.d)
			}
			h.add(dq, dQueries, lo, h.scale)
		}
		h.add(dk, dKeys, 0, 1)
		h.add(dv, dValues, 0, 1)
	})
}

// Weights writes the weights of a text of t tokens, before dropout, to out [Heads t t]; zeros outside the windows.
func (a Attention) Weights(out, q, k []float32, text int) {
	a.units(text, text+1, func(h *oneHead) {
		queries, keys := h.columns(&h.queries, q, h.scale), h.columns(&h.keys, k, 1) // [d t]
		for lo := 0; lo < h.t; lo += queryRows {
			n := min(queryRows, h.t-lo)
			from, to := a.reach(h.t, lo, n)
			weights := h.weights(&a, queries, keys, lo, n) // [n m]
			for i := range n {
				row := out[(h.head*h.t+lo+i)*h.t:][:h.t]
				clear(row)
				copy(row[from:], weights[i*(to-from):(i+1)*(to-from)])
			}
		}
	})
}

// oneHead is one attention head of one text: columns first:first+d of the rows start:start+t of [T D] states, copied
// to separate memory.
type oneHead struct {
	text, head, start, t, first, d, width int
	scale                                 float32 // 1/√d
	mask                                  mask
	drops                                 bool

	queries, queryRow, keys, keyRow, values, dContext memory
	scores, dropped, dWeights                         memory
	context, dKeys, dValues                           memory
}

var headPool = sync.Pool{New: func() any { return new(oneHead) }}

// units calls do for all heads of the texts from text to end.
func (a Attention) units(text, end int, do func(h *oneHead)) {
	drop := newMask(a.Key, a.Dropout)
	Parallel((end-text)*a.Heads, 1, func(unit, _ int) {
		h := headPool.Get().(*oneHead)
		defer headPool.Put(h)
		b := text + unit/a.Heads
		h.head, h.width = unit%a.Heads, a.Width
		h.start, h.t = a.Starts[b], a.Starts[b+1]-a.Starts[b]
		h.text, h.d = b, a.Width/a.Heads
		h.first, h.scale = h.head*h.d, a.scale()
		h.mask, h.drops = drop.of(b*a.Heads+h.head), a.Dropout > 0
		do(h)
	})
}

// rows copies the head's part of x [T D], times scale, to m as [t d].
func (h *oneHead) rows(m *memory, x []float32, scale float32) []float32 {
	out := m.zeros(h.t * h.d)
	for i := range h.t {
		blas.Saxpy(h.d, scale, x[(h.start+i)*h.width+h.first:], 1, out[i*h.d:], 1)
	}
	return out
}

// columns copies the head's part of x [T D], times scale, to m as [d t].
func (h *oneHead) columns(m *memory, x []float32, scale float32) []float32 {
	out := m.zeros(h.d * h.t)
	for i := range h.t {
		for j, v := range x[(h.start+i)*h.width+h.first:][:h.d] {
			out[j*h.t+i] = v * scale
		}
	}
	return out
}

// add adds values [n d], times scale, to the head's part of x [T D], from the text's row lo.
func (h *oneHead) add(x, values []float32, lo int, scale float32) {
	for i := range len(values) / h.d {
		blas.Saxpy(h.d, scale, values[i*h.d:], 1, x[(h.start+lo+i)*h.width+h.first:], 1)
	}
}

// weights returns softmax(Q·Kᵀ/√d) [n m] of the queries lo:lo+n and the m keys in their windows, given queries and keys
// as [d t].
func (h *oneHead) weights(a *Attention, queries, keys []float32, lo, n int) []float32 {
	from, to := a.reach(h.t, lo, n)
	m := to - from
	w := h.scores.zeros(n * m)
	for l := range h.d {
		blas.Sger(n, m, 1, queries[l*h.t+lo:], 1, keys[l*h.t+from:], 1, w, m)
	}
	for i := range n {
		a.mask(w[i*m:(i+1)*m], h.head, lo+i, from)
		Softmax(w[i*m : (i+1)*m])
	}
	return w
}

// drop writes to out x with dropout, the weights [n m] of the queries from lo on and the keys from from on. out may be
// x.
func (h *oneHead) drop(out, x []float32, lo, from, m int) {
	if !h.drops {
		copy(out, x)
		return
	}
	for i := range len(x) / m {
		h.mask.apply(out[i*m:(i+1)*m], x[i*m:(i+1)*m], (lo+i)*h.t+from)
	}
}
