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
