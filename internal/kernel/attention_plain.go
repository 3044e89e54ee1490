package kernel

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
			weights := h.weights(queries, keys, lo, n) // [n t]
			h.drop(weights, weights, lo)
			context := h.context.zeros(n * h.d) // [n d]
			for j := range h.t {
				blas.Sger(n, h.d, 1, weights[j:], h.t, values[j*h.d:], 1, context, h.d)
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
		dKeys, dValues := h.dKeys.zeros(h.t*h.d), h.dValues.zeros(h.t*h.d)                      // [t d] [t d]
		for lo := 0; lo < h.t; lo += queryRows {
			n := min(queryRows, h.t-lo)
			weights := h.weights(queries, keys, lo, n) // [n t]
			dropped := h.dropped.zeros(n * h.t)        // [n t]
			dWeights := h.dWeights.zeros(n * h.t)      // [n t]
			dQueries := h.context.zeros(n * h.d)       // [n d]
			d, query := dContext[lo*h.d:], queryRow[lo*h.d:]

			h.drop(dropped, weights, lo)
			addProduct(dValues, dropped, d, h.t, n, h.d)
			for l := range h.d {
				blas.Sger(n, h.t, 1, d[l:], h.d, values[l*h.t:], 1, dWeights, h.t)
			}
			h.drop(dWeights, dWeights, lo)
			for i := range n {
				SoftmaxBackward(dWeights[i*h.t:(i+1)*h.t], weights[i*h.t:])
			}
			addProduct(dKeys, dWeights, query, h.t, n, h.d)
			for j := range h.t {
				blas.Sger(n, h.d, 1, dWeights[j:], h.t, keyRow[j*h.d:], 1, dQueries, h.d)
			}
			h.add(dq, dQueries, lo, h.scale)
		}
		h.add(dk, dKeys, 0, 1)
		h.add(dv, dValues, 0, 1)
	})
}

// Weights writes the weights of a text of t tokens, before dropout, to out [Heads t t].
func (a Attention) Weights(out, q, k []float32, text int) {
	a.units(text, text+1, func(h *oneHead) {
		queries, keys := h.columns(&h.queries, q, h.scale), h.columns(&h.keys, k, 1) // [d t]
		for lo := 0; lo < h.t; lo += queryRows {
			n := min(queryRows, h.t-lo)
			copy(out[(h.head*h.t+lo)*h.t:], h.weights(queries, keys, lo, n))
		}
	})
}
