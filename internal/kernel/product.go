// Package kernel is float32 arithmetic: products, attention, norms, activations, the optimizer's update. Here is the
// plain version, which reads like its formulas. Every sum runs in an order that depends neither on the number of
// goroutines nor on the number of rows: the same row gives the same bits alone and in any batch.
package kernel

import (
	"sync"

	"gonum.org/v1/gonum/blas/gonum"
)

var blas gonum.Implementation

// MatMul adds a·b to c: c [m n], a [m k], b [k n]. Each element of c takes its products one by one, over k ascending.
func MatMul(c, a, b []float32, m, k, n int) {
	multiply(c, matrix{a, k, 1}, matrix{b, n, 1}, m, k, n)
}

// MatMulBT adds a·bᵀ to c: c [m n], a [m k], b [n k], in MatMul's order.
func MatMulBT(c, a, b []float32, m, k, n int) {
	multiply(c, matrix{a, k, 1}, matrix{b, 1, k}, m, k, n)
}

// MatMulAT adds aᵀ·b to c: c [m n], a [k m], b [k n], in MatMul's order.
func MatMulAT(c, a, b []float32, m, k, n int) {
	multiply(c, matrix{a, 1, m}, matrix{b, n, 1}, m, k, n)
}

// Transpose writes b [m n] to a as [n m].
func Transpose(a, b []float32, m, n int) {
	Parallel(n, 64, func(lo, hi int) {
		matrix{b, 1, n}.pack(a[lo*m:], lo, hi, 0, m)
	})
}

// A product is cut into tiles that the caches hold. What an element sums up, and in which order, does not depend on
// its tile.
const (
	tileRows  = 8   // of c, that one row of b is added to: tileRows*tileCols floats stay in the first cache
	tileCols  = 512 // of b and c
	tileDepth = 128 // rows of b: tileDepth*tileCols floats stay in the second cache
	groupRows = 192 // rows of c that one goroutine takes through the same tile of b
)

// tiles are copies without gaps, so that no stride, such as a power of two, makes the caches evict them.
type tiles struct {
	a [tileDepth * tileRows]float32 // transposed
	b [tileDepth * tileCols]float32
	c [tileRows * tileCols]float32
}

var tilePool = sync.Pool{New: func() any { return new(tiles) }}

// multiply adds a·b to c [m n].
func multiply(c []float32, a, b matrix, m, k, n int) {
	if m == 0 || n == 0 {
		return
	}
	columns := pieces(n, tileCols, 1)
	groups := min(pieces(m, groupRows, Threads()), pieces(m, tileRows, 1)) // as many for each goroutine
	rows, cols := evenly(m, groups), evenly(n, columns)
	Parallel(groups*columns, 1, func(unit, _ int) {
		t := tilePool.Get().(*tiles)
		defer tilePool.Put(t)
		i, j := unit%groups*rows, unit/groups*cols
		for l := 0; l < k; l += tileDepth {
			t.multiply(c, a, b, n, [3]int{i, j, l}, [3]int{min(i+rows, m), min(j+cols, n), min(l+tileDepth, k)})
		}
	})
}

// pieces returns how many pieces of at most limit n is cut into, a multiple of some number.
func pieces(n, limit, multiple int) int {
	p := (n + limit - 1) / limit
	return (p + multiple - 1) / multiple * multiple
}

// evenly returns the size of the pieces that n is cut into, a multiple of 8; the last ones may be smaller or empty.
func evenly(n, pieces int) int { return (n + 8*pieces - 1) / (8 * pieces) * 8 }

// multiply adds to the rows lo[0]:hi[0] and columns lo[1]:hi[1] of c, whose rows have width n, the products of
// lo[2]:hi[2].
func (t *tiles) multiply(c []float32, a, b matrix, n int, lo, hi [3]int) {
	cols, depth := hi[1]-lo[1], hi[2]-lo[2]
	if lo[0] >= hi[0] || cols <= 0 {
		return
	}
	b.pack(t.b[:], lo[2], hi[2], lo[1], hi[1])
	for i := lo[0]; i < hi[0]; i += tileRows {
		rows := min(tileRows, hi[0]-i)
		a.transposed().pack(t.a[:], lo[2], hi[2], i, i+rows)
		for r := range rows {
			copy(t.c[r*cols:(r+1)*cols], c[(i+r)*n+lo[1]:])
		}
		addProduct(t.c[:], t.a[:], t.b[:], rows, depth, cols)
		for r := range rows {
			copy(c[(i+r)*n+lo[1]:(i+r)*n+hi[1]], t.c[r*cols:])
		}
	}
}

// addProduct adds aᵀ·b to c: c [m n], a [k m], b [k n]. It is the formula itself, without tiles or goroutines: each row
// of b is added to all rows of c, times a column of aᵀ.
func addProduct(c, a, b []float32, m, k, n int) {
	for l := range k {
		blas.Sger(m, n, 1, a[l*m:], 1, b[l*n:], 1, c, n)
	}
}

// matrix is a view of data: element i, j is data[i*row+j*col]. One of row and col is 1.
type matrix struct {
	data     []float32
	row, col int
}

func (x matrix) transposed() matrix { return matrix{x.data, x.col, x.row} }

// pack copies rows i:iEnd and columns j:jEnd to out without gaps.
func (x matrix) pack(out []float32, i, iEnd, j, jEnd int) {
	rows, cols := iEnd-i, jEnd-j
	if x.col == 1 {
		for r := range rows {
			copy(out[r*cols:(r+1)*cols], x.data[(i+r)*x.row+j:])
		}
		return
	}
	c := 0
	for ; c+8 <= cols; c += 8 { // at a time, so that what is written lies together
		from := x.data[(j+c)*x.col+i:]
		c0, c1, c2, c3 := from[:rows], from[x.col:][:rows], from[2*x.col:][:rows], from[3*x.col:][:rows]
		c4, c5, c6, c7 := from[4*x.col:][:rows], from[5*x.col:][:rows], from[6*x.col:][:rows], from[7*x.col:][:rows]
		for r, v := range c0 {
			to := (*[8]float32)(out[r*cols+c:])
			to[0], to[1], to[2], to[3] = v, c1[r], c2[r], c3[r]
			to[4], to[5], to[6], to[7] = c4[r], c5[r], c6[r], c7[r]
		}
	}
	for ; c < cols; c++ {
		for r, v := range x.data[(j+c)*x.col+i:][:rows] {
			out[r*cols+c] = v
		}
	}
}
