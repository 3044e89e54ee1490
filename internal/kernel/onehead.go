package kernel

import "sync"

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
