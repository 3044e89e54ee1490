package kernel

import "sync"

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
	a        *packedRows // shared by units that share rows; nil: each packs its own
	rowUnits int         // units that divide the rows' tiles evenly
	tiles    int
	panels   int // of a unit
}

// multiplyTiles is Multiply in tiles. Units of work are rectangles of c; each covers all of k, so that the order in
// which an element is summed does not depend on them.
func (p *Product) multiplyTiles() {
	b := p.Packed
	if b == nil {
		b = packedPool.Get().(*Packed)
		defer packedPool.Put(b)
		if p.BFloat16 {
			b.packPairs(p.B, p.K, p.N)
		} else {
			b.Pack(p.B, p.K, p.N)
		}
	}

	u := productUnit{p: *p, b: b}
	threads := Threads()
	tile := len(use.tile) - 1
	u.rowUnits = pieces(p.M, unitRows, threads)
	u.rowUnits = max(1, min(u.rowUnits, p.M/leastUnitRows))
	u.tiles = pieces(p.M, tile, 1)
	columnUnits := 1
	if u.rowUnits < threads {
		columnUnits = (2*threads + u.rowUnits - 1) / u.rowUnits
	}
	u.panels = (b.panels() + columnUnits - 1) / columnUnits
	columnUnits = (b.panels() + u.panels - 1) / u.panels
	if columnUnits > 1 {
		u.a = packedRowsPool.Get().(*packedRows)
		defer packedRowsPool.Put(u.a)
		u.a.pack(p, 0, p.M, 0, b.depth, blockDepth(b.depth))
	}
	productUnits.run(u.rowUnits*columnUnits, 1, u)
}

var productUnits = tiled(func(u *productUnit, unit, _ int) {
	p, b := &u.p, u.b
	tile := len(use.tile) - 1
	i := unit % u.rowUnits * u.tiles / u.rowUnits * tile
	iEnd := min((unit%u.rowUnits+1)*u.tiles/u.rowUnits*tile, p.M)
	j := unit / u.rowUnits * u.panels
	jEnd := min(j+u.panels, b.panels())

	own := packedRowsPool.Get().(*packedRows)
	defer packedRowsPool.Put(own)
	a, first := own, i // the packed rows begin at first
	if u.a != nil {
		a, first = u.a, 0
	}
	most := blockDepth(b.depth)
	for l := 0; l < b.depth; l += most {
		depth := min(most, b.depth-l)
		from := l
		if u.a == nil {
			a.pack(p, i, iEnd, l, l+depth, most)
			from = 0
		}
		done := j
		for q := j; q < jEnd; q++ {
			a.multiply(p, own.edge, b.panel(l, q), b.panel(l, min(q+1, jEnd-1)), i-first, i, iEnd, from, depth,
				q*use.panel, l == 0)
			if l+depth >= b.depth && ((q+1-done)*use.panel >= groupColumns || q+1 == jEnd) {
				p.After.apply(p.C, p.N, i, iEnd, done*use.panel, min((q+1)*use.panel, p.N))
				done = q + 1
			}
		}
	}
})

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

// packedRows are rows of a, laid out for tiles: block after block of columns, and within a block tile after tile. A
// tile is stored by rows or by columns, as a is. In bfloat16, a column is a column of pairs.
type packedRows struct {
	rows, k  int
	byColumn bool
	data     []float32
	edge     []float32 // memory of the unit for a tile at the right edge, narrower than the others
}

var packedRowsPool = sync.Pool{New: func() any { return &packedRows{edge: make([]float32, 32*32)} }}

// pack lays out rows i:iEnd and columns l:lEnd of the product's a, in blocks of most columns; the last may have fewer.
func (a *packedRows) pack(p *Product, i, iEnd, l, lEnd, most int) {
	x, tile := p.A, len(use.tile)-1
	a.rows, a.k, a.byColumn = (iEnd-i+tile-1)/tile*tile, lEnd-l, x.Col != 1
	if n := a.rows * a.k; cap(a.data) < n {
		a.data = Floats(n)
	}
	for block := 0; block < a.k; block += most {
		depth := min(most, a.k-block)
		for t, rows := 0, 0; t < iEnd-i; t += rows {
			rows, _ = nextTiles(iEnd - i - t)
			to := a.data[block*a.rows+t*depth:][:rows*depth]
			switch {
			case a.byColumn && p.BFloat16:
				x.packPairRows(to, rows, i+t, l+block, rows, depth, p.K)
			case a.byColumn:
				x.packColumns(to, i+t, l+block, rows, depth)
			case p.BFloat16:
				for r := range rows {
					x.packPairRow(to[r*depth:(r+1)*depth], i+t+r, l+block, p.K)
				}
			default:
				for r := range rows {
					copy(to[r*depth:(r+1)*depth], x.Data[(i+t+r)*x.Row+l+block:])
				}
			}
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

// multiply multiplies the packed rows from first on, of the block at column l, by one panel, into rows i:iEnd of c.
// next is the panel after it, edge memory for a tile.
func (a *packedRows) multiply(p *Product, edge, panel, next []float32, first, i, iEnd, l, depth, j int, begin bool) {
	t := tiles{
		c: p.C[j:], cRow: p.N, from: p.C[j:], fromRow: p.N,
		a: a.data[l*a.rows:], aRow: depth, aCol: 1, panel: panel, k: depth, next: next,
		bfloat16: p.BFloat16,
	}
	switch {
	case begin && p.Start == StartAtZero:
		t.from, t.fromRow = zeros[:], 0
	case begin && p.Start == StartAtBias:
		t.from, t.fromRow = p.Bias[j:], 0
	}
	if cols := min(use.panel, p.N-j); cols < use.panel {
		t.multiplyNarrow(edge, cols, first, i, iEnd, a.byColumn)
		return
	}
	for i < iEnd {
		rows, count := nextTiles(iEnd - i)
		if a.byColumn {
			t.aRow, t.aCol = 1, rows
		}
		t.multiply(rows, count, i, first*depth, rows*depth)
		i, first = i+rows*count, first+rows*count
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
	bfloat16      bool      // a and panel are pairs
}

// multiply multiplies count tiles of the given rows: the first at row i of c and at index at of a, the next ones at
// steps of step in a.
func (t *tiles) multiply(rows, count, i, at, step int) {
	of := use.tile
	if t.bfloat16 {
		of = use.pairTile
	}
	of[rows](&t.c[i*t.cRow], &t.from[i*t.fromRow], t.cRow, t.fromRow,
		&t.a[at], t.aRow, t.aCol, step, &t.panel[0], t.k, &t.next[0], &t.next[len(t.next)-1], count)
}

// multiplyNarrow multiplies the rows i:iEnd by a panel with fewer columns, through memory for one tile.
func (t *tiles) multiplyNarrow(edge []float32, cols, first, i, iEnd int, byColumn bool) {
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
		narrow.multiply(rows, 1, 0, first*t.k, 0)
		for r := range rows {
			copy(t.c[(i+r)*t.cRow:][:cols], edge[r*use.panel:])
		}
		i, first = i+rows, first+rows
	}
}

// zeros are added to a tile's sums where C starts at zero.
var zeros [32]float32
