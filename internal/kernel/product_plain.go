package kernel

import (
	"sync"

	"gonum.org/v1/gonum/blas/gonum"
)

var blas gonum.Implementation

// A product is divided into tiles that fit in the caches. The order in which an element is summed does not depend on
// its tile.
const (
	tileRows  = 8   // of c, that one row of b is added to: tileRows*tileCols floats stay in the L1 cache
	tileCols  = 512 // of b and c
	tileDepth = 128 // rows of b: tileDepth*tileCols floats stay in the L2 cache
	groupRows = 192 // rows of c that one goroutine computes with the same tile of b
)

// copies have no gaps between rows, so that no stride, such as a power of two, makes the caches evict them.
type copies struct {
	a [tileDepth * tileRows]float32 // transposed
	b [tileDepth * tileCols]float32
	c [tileRows * tileCols]float32
}

var tilePool = sync.Pool{New: func() any { return new(copies) }}

// multiply adds a·b to c [m n].
func multiply(c []float32, a, b Matrix, m, k, n int) {
	if m == 0 || n == 0 {
		return
	}
	columns := pieces(n, tileCols, 1)
	groups := min(pieces(m, groupRows, Threads()), pieces(m, tileRows, 1)) // as many for each goroutine
	rows, cols := evenly(m, groups), evenly(n, columns)
	Parallel(groups*columns, 1, func(unit, _ int) {
		t := tilePool.Get().(*copies)
		defer tilePool.Put(t)
		i, j := unit%groups*rows, unit/groups*cols
		for l := 0; l < k; l += tileDepth {
			t.multiply(c, a, b, n, [3]int{i, j, l}, [3]int{min(i+rows, m), min(j+cols, n), min(l+tileDepth, k)})
		}
	})
}

// pieces returns the number of pieces of at most limit that n is divided into, a multiple of some number.
func pieces(n, limit, multiple int) int {
	p := (n + limit - 1) / limit
	return (p + multiple - 1) / multiple * multiple
}

// evenly returns the size of the pieces that n is divided into, a multiple of 8; the last ones may be smaller or empty.
func evenly(n, pieces int) int { return (n + 8*pieces - 1) / (8 * pieces) * 8 }

// multiply adds to the rows lo[0]:hi[0] and columns lo[1]:hi[1] of c, whose rows have width n, the products of
// lo[2]:hi[2].
func (t *copies) multiply(c []float32, a, b Matrix, n int, lo, hi [3]int) {
	cols, depth := hi[1]-lo[1], hi[2]-lo[2]
	if lo[0] >= hi[0] || cols <= 0 {
		return
	}
	b.pack(t.b[:], lo[2], hi[2], lo[1], hi[1])
	for i := lo[0]; i < hi[0]; i += tileRows {
		rows := min(tileRows, hi[0]-i)
		a.T().pack(t.a[:], lo[2], hi[2], i, i+rows)
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
