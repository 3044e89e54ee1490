package kernel

import (
	"cmp"
	"math"
	"sync"
	"unsafe"
)

// tiles are how a set multiplies in one precision. K is counted in lanes, the 32 bits of a float32, which hold one
// value of float32, two of bfloat16 or several integers.
type tiles struct {
	run           []tileFunc // run[n-1] is for tiles of n rows
	panel         int        // columns of a tile, at most mostColumns
	lane          int        // values in a lane
	depthMultiple int        // lanes of a product's K are a multiple of it, filled up with zeros; 1 in Float32

	// multiplyAdds runs rounds of so many operations in registers. nil: the tiles are in Go.
	multiplyAdds func(times int)
	operations   int
}

// tileFunc writes from + a·b to c, count tiles of some rows and panel columns: the tiles of c and from are below each
// other, those of a have the stride aTile. a [rows k] has the strides aRow and aCol, b [k panel] has no gaps. Sums of
// Int8 are int32. The values from next to end are prefetched.
type tileFunc = func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next,
	end *float32, count int)

// rows returns the number of rows of the tallest tile.
func (t *tiles) rows() int { return len(t.run) }

func (t *tiles) inGo() bool { return t.multiplyAdds == nil }

// depth returns the number of lanes of k values.
func (t *tiles) depth(k int) int { return pieces(k, t.lane, t.depthMultiple) }

// blockDepth returns the number of rows of b in a block, with depth rows divided into blocks of about equal depth.
func (t *tiles) blockDepth(depth int) int {
	depth = max(1, depth)
	blocks, step := pieces(depth, panelDepth, 1), max(8, t.depthMultiple)
	return (depth + step*blocks - 1) / (step * blocks) * step
}

// next returns the number of rows of the next tiles, and the number of tiles: as many full ones as possible. If only a
// few rows would remain after them, the last full tile and these rows are divided into two tiles, since a tile of one
// row takes as long as one of four.
func (t *tiles) next(left int) (rows, count int) {
	full := t.rows()
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

// pieces returns the number of pieces of at most limit that n is divided into, a multiple of some number.
func pieces(n, limit, multiple int) int {
	p := (n + limit - 1) / limit
	return (p + multiple - 1) / multiple * multiple
}

const (
	// unitRows is the approximate number of rows of a in a unit of work, rounded to whole tiles. At panelDepth columns
	// they stay in the L2 cache, which the core's other thread may share.
	unitRows = 96
	// leastUnitRows is the least number of rows in a unit: with fewer rows, units divide the columns instead and share
	// packed rows. It is at least two tiles' rows, since rows that are packed together have the same tiles as those of
	// the units only if each unit has two.
	leastUnitRows = 24
	groupColumns  = 256 // columns of c that are still in the cache when the epilogue reads them
)

// productUnit is the input of the units of work of a product, rectangles of c; each covers all of k, so that the order
// in which an element is summed does not depend on them.
type productUnit struct {
	p        Product
	b        *Packed
	ints     *quantized // the rows of a as integers; nil where they are not
	a        rowTiles   // of all rows, which all units share; without data: each packs its own
	rowUnits int        // units that divide the rows' tiles evenly
	tiles    int
	panels   int // of a unit
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
	tile, panel := b.tiles.rows(), b.tiles.panel
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
	for l := 0; l < b.depth; l += b.block {
		depth := min(b.block, b.depth-l)
		if a == &own.rowTiles {
			own.pack(p, b.tiles, i, iEnd, l, l+depth, b.block)
		}
		done := j
		for q := j; q < jEnd; q++ {
			t := strip{tiles: b.tiles, panel: b.panel(l, q), k: depth, next: u.nextPanel(l, q, j, jEnd)}
			a.multiply(&t, p, &own.edge, i, iEnd, l, q*panel)
			if l+depth >= b.depth && ((q+1-done)*panel >= groupColumns || q+1 == jEnd) {
				first, end := done*panel, min((q+1)*panel, p.N)
				if u.ints != nil {
					u.ints.dequantize(p, b, i, iEnd, first, end)
				}
				p.After.apply(p.C, p.N, i, iEnd, first, end)
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
	if l += u.b.block; l >= u.b.depth {
		l = 0
		if u.rowUnits == 1 && jEnd < u.b.panels() {
			j = jEnd
		}
	}
	return u.b.panel(l, j)
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
	edge memory // of the unit, for a tile at the right edge, narrower than the others
}

var packedRowsPool = sync.Pool{New: func() any { return new(packedRows) }}

// pack lays out rows i:iEnd and columns l:lEnd of the product's a, in blocks of most columns; the last may have fewer.
func (a *packedRows) pack(p *Product, tiles *tiles, i, iEnd, l, lEnd, most int) {
	tile := tiles.rows()
	a.i, a.l, a.block, a.byColumn = i, l, pieces(iEnd-i, tile, 1)*tile, p.A.Col != 1
	if n := a.block * (lEnd - l); cap(a.data) < n {
		a.data = Floats(n)
	}
	for block := 0; block < lEnd-l; block += most {
		depth := min(most, lEnd-l-block)
		for t, rows := 0, 0; t < iEnd-i; t += rows {
			rows, _ = tiles.next(iEnd - i - t)
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
	if wide := use.tiles[Float32].panel / 2; use.copyNarrow != nil && len(from) >= wide && len(out) >= wide {
		c = min(depth, (len(from)-wide)/x.Col+1, (len(out)-wide)/rows+1)
		use.copyNarrow(&out[0], &from[0], x.Col, c, rows)
	}
	for ; c < depth; c++ {
		copy(out[c*rows:(c+1)*rows], from[c*x.Col:])
	}
}

// multiply multiplies rows i:iEnd of the block at column l by the panel of t, into the same rows of c, columns from j
// on. edge is memory for a tile.
func (a *rowTiles) multiply(t *strip, p *Product, edge *memory, i, iEnd, l, j int) {
	row := cmp.Or(a.row, t.k)
	at := (i - a.i) * row
	t.c, t.cRow, t.from, t.fromRow = p.C[j:], p.N, p.C[j:], p.N
	t.a, t.aRow, t.aCol = a.data[(l-a.l)*a.block:], row, 1
	switch {
	case l == 0 && (p.Start == StartAtZero || p.Precision == Int8):
		t.from, t.fromRow = zeros[:], 0
	case l == 0 && p.Start == StartAtBias:
		t.from, t.fromRow = p.Bias[j:], 0
	}
	if cols := p.N - j; cols < t.tiles.panel {
		t.multiplyNarrow(edge.of(t.tiles.rows()*t.tiles.panel), cols, at, i, iEnd, a.byColumn)
		return
	}
	for i < iEnd {
		rows, count := t.tiles.next(iEnd - i)
		if a.byColumn {
			t.aRow, t.aCol = 1, rows
		}
		t.multiply(rows, count, i, at, rows*row)
		i, at = i+rows*count, at+rows*count*row
	}
}

// strip is rows of c, of which tile after tile is multiplied by the same panel.
type strip struct {
	tiles         *tiles
	c, from       []float32
	cRow, fromRow int
	a             []float32
	aRow, aCol    int
	panel         []float32 // [k columns]
	k             int
	next          []float32 // is prefetched
}

// multiply multiplies count tiles of the given rows: the first at row i of c and at index at of a, the next ones at
// steps of step in a.
func (t *strip) multiply(rows, count, i, at, step int) {
	t.tiles.run[rows-1](&t.c[i*t.cRow], &t.from[i*t.fromRow], t.cRow, t.fromRow,
		&t.a[at], t.aRow, t.aCol, step, &t.panel[0], t.k, &t.next[0], &t.next[len(t.next)-1], count)
}

// multiplyNarrow multiplies the rows i:iEnd, whose values begin at index at of a, by a panel with fewer columns,
// through memory of one tile.
func (t *strip) multiplyNarrow(edge []float32, cols, at, i, iEnd int, byColumn bool) {
	width := t.tiles.panel
	for i < iEnd {
		rows, _ := t.tiles.next(iEnd - i)
		for r := range rows {
			copy(edge[r*width:], t.from[(i+r)*t.fromRow:][:cols])
		}
		narrow := *t
		narrow.c, narrow.cRow, narrow.from, narrow.fromRow = edge, width, edge, width
		if byColumn {
			narrow.aRow, narrow.aCol = 1, rows
		}
		narrow.multiply(rows, 1, 0, at, 0)
		for r := range rows {
			copy(t.c[(i+r)*t.cRow:][:cols], edge[r*width:])
		}
		i, at = i+rows, at+rows*t.aRow
	}
}

// mostColumns is the most columns of a tile.
const mostColumns = 32

// zeros are added to a tile's sums where C starts at zero.
var zeros [mostColumns]float32

// Packed is a matrix b [k n] laid out for many products a·b in one precision: in panels as wide as a tile, block by
// block. The zero value is empty.
type Packed struct {
	k, n      int
	precision Precision
	tiles     *tiles
	depth     int // rows of data: the lanes of k values
	block     int // of them in a block; the last may have fewer
	data      []float32
	scales    []float32 // [n] of the columns' integers
	sums      []int32   // [n]
}

// Pack lays out b [k n], reusing the memory of the previous matrix if it is large enough. It panics if k is larger than
// MaxInt8Depth for Int8.
func (p *Packed) Pack(b Matrix, k, n int, precision Precision) {
	p.open(k, n, precision)
	if precision == Int8 {
		packColumns.run(p.panels(), panelGroup, packArgs{p, b})
		return
	}
	blocks := pieces(p.depth, p.block, 1)
	packPanels.run(blocks*p.panels(), panelGroup, packArgs{p, b})
}

// open makes room for a matrix [k n].
func (p *Packed) open(k, n int, precision Precision) {
	if precision == Int8 && k > MaxInt8Depth {
		panic("kernel: a product of int8 is too deep")
	}
	p.k, p.n, p.precision, p.tiles = k, n, precision, &use.tiles[precision]
	p.depth = p.tiles.depth(k)
	p.block = p.tiles.blockDepth(p.depth)
	size := p.depth * p.panels() * p.tiles.panel
	if cap(p.data) < size {
		p.data = Floats(size)
	}
	p.data = p.data[:size]
	if precision != Int8 {
		return
	}
	if cap(p.scales) < n {
		p.scales, p.sums = make([]float32, n), make([]int32, n)
	}
	p.scales, p.sums = p.scales[:n], p.sums[:n]
}

// panels returns the matrix's number of panels.
func (p *Packed) panels() int { return pieces(p.n, p.tiles.panel, 1) }

// panel returns panel j of the block that begins at row l: [depth panel].
func (p *Packed) panel(l, j int) []float32 {
	depth := min(p.block, p.depth-l)
	at := (l*p.panels() + j*depth) * p.tiles.panel
	return p.data[at : at+depth*p.tiles.panel]
}

// columns returns the first column of panel j and the number of its columns.
func (p *Packed) columns(j int) (first, cols int) {
	first = j * p.tiles.panel
	return first, min(p.tiles.panel, p.n-first)
}

// A product's blocks: rows of b whose panel stays in the L1 cache, with a tile's part of a.
const (
	panelDepth = 384 // at most
	panelGroup = 8   // panels that one goroutine packs at a time
)

type packArgs struct {
	to *Packed
	b  Matrix
}

var packPanels = tiled(func(a *packArgs, lo, hi int) {
	panels := a.to.panels()
	for i := lo; i < hi; i++ {
		l, j := i/panels*a.to.block, i%panels
		panel := a.to.panel(l, j)
		first, cols := a.to.columns(j)
		if a.to.precision == BFloat16 {
			a.b.packPairPanel(panel, a.to.tiles.panel, l, first, cols, a.to.k)
		} else {
			a.b.packPanel(panel, a.to.tiles.panel, l, first, cols)
		}
	}
})

// packPanel writes to out [depth width] the columns j:j+cols from row l on, padded with zeros to the panel's width.
func (x Matrix) packPanel(out []float32, width, l, j, cols int) {
	depth := len(out) / width
	switch {
	case x.Col == 1 && cols == width && use.copyWide != nil:
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

// oneTile is a tileFunc for one tile. Those in assembly prefetch the k/2 cache lines at next.
type oneTile func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// below returns the functions that compute count tiles, one below the other: of each number of rows from 1 on.
func below(each ...oneTile) []tileFunc {
	var run []tileFunc
	for i, tile := range each {
		rows := i + 1
		run = append(run, func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32,
			k int, next, end *float32, count int) {
			for {
				tile(c, from, cRow, fromRow, a, aRow, aCol, b, k, next)
				if count--; count == 0 {
					return
				}
				c, from, a = after(c, rows*cRow), after(from, rows*fromRow), after(a, aTile)
				if left := int(uintptr(unsafe.Pointer(end))-uintptr(unsafe.Pointer(next))) / 4; left > 0 {
					next = after(next, min(left, 8*k))
				}
			}
		})
	}
	return run
}

// after returns the address n values after x.
func after(x *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(x), 4*n)) }

// goPanel is the number of columns of the tiles in Go, which have one row: their sums stay in registers.
const goPanel = 4

// floatTileInGo adds each product to its sum, which starts at from.
func floatTileInGo(c, from *float32, _, _ int, a *float32, _, aCol int, b *float32, k int, _ *float32) {
	panel, row := unsafe.Slice((*[goPanel]float32)(unsafe.Pointer(b)), k), unsafe.Slice(a, (k-1)*aCol+1)
	start := (*[goPanel]float32)(unsafe.Pointer(from))
	s0, s1, s2, s3 := start[0], start[1], start[2], start[3]
	for l := range panel {
		x, y := row[l*aCol], &panel[l]
		s0 += x * y[0]
		s1 += x * y[1]
		s2 += x * y[2]
		s3 += x * y[3]
	}
	*(*[goPanel]float32)(unsafe.Pointer(c)) = [goPanel]float32{s0, s1, s2, s3}
}

func pairTileInGo(c, from *float32, _, _ int, a *float32, _, aCol int, b *float32, k int, _ *float32) {
	to, panel := (*[goPanel]float32)(unsafe.Pointer(c)), unsafe.Slice((*[goPanel]float32)(unsafe.Pointer(b)), k)
	var sums [goPanel]float32
	for l := range panel {
		x := *after(a, l*aCol)
		for j, y := range panel[l] {
			sums[j] = addPairs(sums[j], x, y)
		}
	}
	for j, start := range (*[goPanel]float32)(unsafe.Pointer(from)) {
		to[j] = start + sums[j]
	}
}

func byteTileInGo(c, from *float32, _, _ int, a *float32, _, aCol int, b *float32, k int, _ *float32) {
	to, panel := (*[goPanel]float32)(unsafe.Pointer(c)), unsafe.Slice((*[goPanel]float32)(unsafe.Pointer(b)), k)
	var sums [goPanel]int32
	for l := range panel {
		x := math.Float32bits(*after(a, l*aCol))
		for j, y := range panel[l] {
			sums[j] += multiplyBytes(x, math.Float32bits(y))
		}
	}
	for j, start := range (*[goPanel]float32)(unsafe.Pointer(from)) {
		to[j] = math.Float32frombits(math.Float32bits(start) + uint32(sums[j]))
	}
}

// multiplyBytes returns the sum of the products of four bytes without signs and four with signs.
func multiplyBytes(x, y uint32) (sum int32) {
	for shift := 0; shift < 32; shift += 8 {
		sum += int32(uint8(x>>shift)) * int32(int8(y>>shift))
	}
	return sum
}
