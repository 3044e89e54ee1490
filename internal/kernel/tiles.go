package kernel

import (
	"cmp"
	"sync"

	"gonum.org/v1/gonum/blas/gonum"
)

const (
	// unitRows is the approximate number of rows of a in a unit of work, rounded to whole tiles. At panelDepth columns
	// they stay in the L2 cache, which the core's other thread may share.
	unitRows = 96
	// leastUnitRows is the least number of rows in a unit: with fewer rows, units divide the columns instead and share
	// packed rows. It is more than a tile's rows, since rows that are packed together have the same tiles as those of
	// the units only if each unit has two.
	leastUnitRows = 24
	groupColumns  = 256 // columns of c that are still in the cache when the epilogue reads them
)

// productUnit is the input of a unit of work.
type productUnit struct {
	p        Product
	b        *Packed
	ints     *quantized // the rows of a as integers; nil where they are not
	a        rowTiles   // of all rows, which all units share; without data: each packs its own
	rowUnits int        // units that divide the rows' tiles evenly
	tiles    int
	panels   int // of a unit
}

// multiplyTiles is Multiply in tiles. Units of work are rectangles of c; each covers all of k, so that the order in
// which an element is summed does not depend on them. ints are the rows of a product of Int8.
func (p *Product) multiplyTiles(ints *quantized) {
	t := p.divided(ints, nil)
	productUnits.run(t.units, 1, t.productUnit)
	t.release()
}

// rowsInPlace reports whether tiles read the rows of a where they are. At a stride of a multiple of 4096 bytes, the
// rows of a tile would be in the same set of the L1 cache, which holds eight on most processors.
func (p *Product) rowsInPlace() bool {
	return p.A.Col == 1 && p.A.Row%1024 != 0 && p.Precision == Float32
}

var productUnits = tiled(func(u *productUnit, unit, _ int) { u.compute(unit) })

// compute computes one of the units.
func (u *productUnit) compute(unit int) {
	p, b := &u.p, u.b
	tile := len(use.tile) - 1
	i := unit % u.rowUnits * u.tiles / u.rowUnits * tile
	iEnd := min((unit%u.rowUnits+1)*u.tiles/u.rowUnits*tile, p.M)
	j := unit / u.rowUnits * u.panels
	jEnd := min(j+u.panels, b.panels())

	own := packedRowsPool.Get().(*packedRows)
	defer packedRowsPool.Put(own)
	a := &u.a
	if a.data == nil {
		a = &own.rowTiles
	}
	most := blockDepth(b.depth)
	for l := 0; l < b.depth; l += most {
		depth := min(most, b.depth-l)
		if a == &own.rowTiles {
			own.pack(p, i, iEnd, l, l+depth, most)
		}
		done := j
		for q := j; q < jEnd; q++ {
			a.multiply(p, own.edge, b.panel(l, q), u.nextPanel(l, q, j, jEnd), i, iEnd, l, depth, q*use.panel)
			if l+depth >= b.depth && ((q+1-done)*use.panel >= groupColumns || q+1 == jEnd) {
				if u.ints != nil {
					u.ints.dequantize(p, b, i, iEnd, done*use.panel, min((q+1)*use.panel, p.N))
				}
				p.After.apply(p.C, p.N, i, iEnd, done*use.panel, min((q+1)*use.panel, p.N))
				done = q + 1
			}
		}
	}
}

// nextPanel returns the panel that is used after panel q of the block at row l, in a unit with the panels j:jEnd: after
// the last one, the first of the next block; after the last block, the first of the unit that its goroutine takes
// next, if it is beside this one.
func (u *productUnit) nextPanel(l, q, j, jEnd int) []float32 {
	if q+1 < jEnd {
		return u.b.panel(l, q+1)
	}
	if l += blockDepth(u.b.depth); l >= u.b.depth {
		l = 0
		if u.rowUnits == 1 && jEnd < u.b.panels() {
			j = jEnd
		}
	}
	return u.b.panel(l, j)
}

// nextTiles returns the number of rows of the next tiles, and the number of tiles: as many full ones as possible. If
// only a few rows would remain after them, the last full tile and these rows are divided into two tiles, since a tile
// of one row takes as long as one of four.
func nextTiles(left int) (rows, count int) {
	full := len(use.tile) - 1
	switch count, rest := left/full, left%full; {
	case count == 0:
		return rest, 1
	case rest == 0 || rest >= 4:
		return full, count
	case count > 1:
		return full, count - 1
	}
	return (left + 1) / 2, 1
}

// rowTiles are rows of a as tiles read them: in place, or as packedRows lays them out.
type rowTiles struct {
	data     []float32
	i, l     int  // row and column of a with which data begins
	block    int  // values before the block at column l+n, for each of the n columns
	row      int  // values between rows in place; 0: as many as the block has columns
	byColumn bool // tiles are stored by columns
}

// packedRows are rows of a, laid out for tiles: block after block of columns, and within a block tile after tile. A
// tile is stored by rows or by columns, as a is. In bfloat16, a column is a column of pairs.
type packedRows struct {
	rowTiles
	edge []float32 // memory of the unit for a tile at the right edge, narrower than the others
}

var packedRowsPool = sync.Pool{New: func() any { return &packedRows{edge: make([]float32, 32*32)} }}

// pack lays out rows i:iEnd and columns l:lEnd of the product's a, in blocks of most columns; the last may have fewer.
func (a *packedRows) pack(p *Product, i, iEnd, l, lEnd, most int) {
	tile := len(use.tile) - 1
	a.i, a.l, a.block, a.byColumn = i, l, pieces(iEnd-i, tile, 1)*tile, p.A.Col != 1
	if n := a.block * (lEnd - l); cap(a.data) < n {
		a.data = Floats(n)
	}
	for block := 0; block < lEnd-l; block += most {
		depth := min(most, lEnd-l-block)
		for t, rows := 0, 0; t < iEnd-i; t += rows {
			rows, _ = nextTiles(iEnd - i - t)
			p.packTile(a.data[block*a.block+t*depth:][:rows*depth], i+t, l+block, rows, depth)
		}
	}
}

// packTile lays out to out the columns l:l+depth of the tile of rows i:i+rows.
func (p *Product) packTile(out []float32, i, l, rows, depth int) {
	x := p.A
	switch byColumn := x.Col != 1; {
	case byColumn && p.Precision == BFloat16:
		x.packPairRows(out, rows, i, l, rows, depth, p.K)
	case byColumn:
		x.packColumns(out, i, l, rows, depth)
	case p.Precision == BFloat16:
		for r := range rows {
			x.packPairRow(out[r*depth:(r+1)*depth], i+r, l, p.K)
		}
	default:
		for r := range rows {
			copy(out[r*depth:(r+1)*depth], x.Data[(i+r)*x.Row+l:])
		}
	}
}

// packColumns writes to out [depth rows] the columns l:l+depth of rows i:i+rows, of a matrix stored by columns.
func (x Matrix) packColumns(out []float32, i, l, rows, depth int) {
	from, c := x.Data[l*x.Col+i:], 0
	// A register is wider than a column: this copies the columns for which both sides have room for a whole register.
	// The next column overwrites the excess.
	if wide := use.panel / 2; len(from) >= wide && len(out) >= wide {
		c = min(depth, (len(from)-wide)/x.Col+1, (len(out)-wide)/rows+1)
		use.copyNarrow(&out[0], &from[0], x.Col, c, rows)
	}
	for ; c < depth; c++ {
		copy(out[c*rows:(c+1)*rows], from[c*x.Col:])
	}
}

// multiply multiplies rows i:iEnd of the block at column l by one panel, into the same rows of c, columns from j on.
// next is the panel after it, edge memory for a tile.
func (a *rowTiles) multiply(p *Product, edge, panel, next []float32, i, iEnd, l, depth, j int) {
	row := cmp.Or(a.row, depth)
	at := (i - a.i) * row
	t := tiles{
		c: p.C[j:], cRow: p.N, from: p.C[j:], fromRow: p.N,
		a: a.data[(l-a.l)*a.block:], aRow: row, aCol: 1, panel: panel, k: depth, next: next, precision: p.Precision,
	}
	switch {
	case l == 0 && (p.Start == StartAtZero || p.Precision == Int8):
		t.from, t.fromRow = zeros[:], 0
	case l == 0 && p.Start == StartAtBias:
		t.from, t.fromRow = p.Bias[j:], 0
	}
	if cols := min(use.panel, p.N-j); cols < use.panel {
		t.multiplyNarrow(edge, cols, at, i, iEnd, a.byColumn)
		return
	}
	for i < iEnd {
		rows, count := nextTiles(iEnd - i)
		if a.byColumn {
			t.aRow, t.aCol = 1, rows
		}
		t.multiply(rows, count, i, at, rows*row)
		i, at = i+rows*count, at+rows*count*row
	}
}

// tiles are tiles of a product that use the same panel.
type tiles struct {
	c, from       []float32
	cRow, fromRow int
	a             []float32
	aRow, aCol    int
	panel         []float32
	k             int
	next          []float32 // is prefetched
	precision     Precision // of a and panel
}

// multiply multiplies count tiles of the given rows: the first at row i of c and at index at of a, the next ones at
// steps of step in a.
func (t *tiles) multiply(rows, count, i, at, step int) {
	use.tileOf(t.precision)[rows](&t.c[i*t.cRow], &t.from[i*t.fromRow], t.cRow, t.fromRow,
		&t.a[at], t.aRow, t.aCol, step, &t.panel[0], t.k, &t.next[0], &t.next[len(t.next)-1], count)
}

// multiplyNarrow multiplies the rows i:iEnd, whose values begin at index at of a, by a panel with fewer columns,
// through memory of one tile.
func (t *tiles) multiplyNarrow(edge []float32, cols, at, i, iEnd int, byColumn bool) {
	for i < iEnd {
		rows, _ := nextTiles(iEnd - i)
		for r := range rows {
			copy(edge[r*use.panel:], t.from[(i+r)*t.fromRow:][:cols])
		}
		narrow := *t
		narrow.c, narrow.cRow, narrow.from, narrow.fromRow = edge, use.panel, edge, use.panel
		if byColumn {
			narrow.aRow, narrow.aCol = 1, rows
		}
		narrow.multiply(rows, 1, 0, at, 0)
		for r := range rows {
			copy(t.c[(i+r)*t.cRow:][:cols], edge[r*use.panel:])
		}
		i, at = i+rows, at+rows*t.aRow
	}
}

// zeros are added to a tile's sums where C starts at zero.
var zeros [32]float32

// Packed is a matrix b [k n] laid out for many products a·b in one precision: for tiles in panels as wide as a tile,
// block by block; for the plain version as one panel, of integers for Int8, else of float32 values. The zero value is
// empty.
type Packed struct {
	k, n      int
	precision Precision
	depth     int // rows of data: k, or the lanes of k values
	data      []float32
	scales    []float32 // [n] of the columns' integers
	sums      []int32   // [n]
}

// Pack lays out b [k n], reusing the memory of the previous matrix if it is large enough. It panics if k is larger than
// MaxInt8Depth for Int8.
func (p *Packed) Pack(b Matrix, k, n int, precision Precision) {
	p.k, p.n, p.precision, p.depth = k, n, precision, k
	switch {
	case precision == Int8:
		p.packInt8(b)
	case !precision.inTiles():
		p.grow(k * n)
		b.pack(p.data, 0, k, 0, n)
	case precision == BFloat16:
		p.depth = pairDepth(k)
		p.packTiles(b)
	default:
		p.packTiles(b)
	}
}

func (p *Packed) packTiles(b Matrix) {
	p.grow(p.depth * p.panels() * use.panel)
	if len(p.data) == 0 {
		return
	}
	packPanels.run(pieces(p.depth, blockDepth(p.depth), 1)*p.panels(), panelGroup, packArgs{p, b})
}

func (p *Packed) grow(n int) {
	if cap(p.data) < n {
		p.data = Floats(n)
	}
	p.data = p.data[:n]
}

// panels returns the matrix's number of panels.
func (p *Packed) panels() int { return pieces(p.n, p.panelWidth(), 1) }

// panelWidth returns the number of columns of a panel.
func (p *Packed) panelWidth() int {
	if p.precision.inTiles() {
		return use.panel
	}
	return p.n
}

// panel returns panel j of the block that begins at row l: [depth panel].
func (p *Packed) panel(l, j int) []float32 {
	depth := min(blockDepth(p.depth), p.depth-l)
	width := p.panelWidth()
	at := (l*p.panels() + j*depth) * width
	return p.data[at : at+depth*width]
}

// A product's blocks: rows of b whose panel stays in the L1 cache, with a tile's part of a.
const (
	panelDepth = 384 // at most
	panelGroup = 8   // panels that one goroutine packs at a time
)

// blockDepth returns the number of rows of b in a block, with k rows divided into blocks of about equal depth.
func blockDepth(k int) int { return evenly(k, pieces(k, panelDepth, 1)) }

type packArgs struct {
	to *Packed
	b  Matrix
}

var packPanels = tiled(func(a *packArgs, lo, hi int) {
	panels := a.to.panels()
	for i := lo; i < hi; i++ {
		l, j := i/panels*blockDepth(a.to.depth), i%panels
		panel, cols := a.to.panel(l, j), min(use.panel, a.to.n-j*use.panel)
		if a.to.precision == BFloat16 {
			a.b.packPairPanel(panel, l, j*use.panel, cols, a.to.k)
		} else {
			a.b.packPanel(panel, l, j*use.panel, cols)
		}
	}
})

// packPanel writes to out [depth panel] the columns j:j+cols from row l on, padded with zeros to the panel's width.
func (x Matrix) packPanel(out []float32, l, j, cols int) {
	width := use.panel
	depth := len(out) / width
	switch {
	case x.Col == 1 && cols == width:
		_ = x.Data[(l+depth-1)*x.Row+j+width-1]
		use.copyWide(&out[0], &x.Data[l*x.Row+j], x.Row, depth)
	case x.Col == 1:
		for r := range depth {
			row := out[r*width : (r+1)*width]
			clear(row[copy(row[:cols], x.Data[(l+r)*x.Row+j:]):])
		}
	default:
		if cols < width {
			clear(out)
		}
		transposeTo(out, width, x.Data[j*x.Col+l:], x.Col, cols, depth)
	}
}

// transposeTo writes the rows of x [rows cols], with row stride stride, to the columns of out, with row stride width.
func transposeTo(out []float32, width int, x []float32, stride, rows, cols int) {
	r := 0
	if use.transpose8 != nil && cols >= 8 {
		for ; r+8 <= rows; r += 8 {
			_, _ = out[(cols-1)*width+r+7], x[(r+7)*stride+cols-1]
			use.transpose8(&out[r], &x[r*stride], width, stride, cols/8)
		}
	}
	for i := range rows {
		from := 0
		if i < r {
			from = cols &^ 7
		}
		for j := from; j < cols; j++ {
			out[j*width+i] = x[i*stride+j]
		}
	}
}

// packedPool holds the memory of matrices that are packed for one product.
var packedPool = sync.Pool{New: func() any { return new(Packed) }}

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
