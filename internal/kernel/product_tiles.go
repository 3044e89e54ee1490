package kernel

import "sync"

// Rows of a that one unit of work takes through a panel of b: with panelDepth, they stay in the second cache.
const (
	unitRows      = 132 // at most, a multiple of either set's tile
	leastUnitRows = 24  // rather than fewer, units share the columns
	groupColumns  = 256 // of c that the epilogue finds in the cache
)

// productUnit is what a unit of work knows.
type productUnit struct {
	p        Product
	b        *Packed
	a        *packedRows // shared by units that share rows; nil: each packs its own
	rowUnits int         // units of so many rows:
	rows     int
	panels   int // of a unit
}

// multiplyTiles is Multiply in tiles. Units of work are rectangles of c; each goes over all of k, so the order in which
// an element sums does not depend on them.
func (p *Product) multiplyTiles() {
	b := p.Packed
	if b == nil {
		b = packedPool.Get().(*Packed)
		defer packedPool.Put(b)
		b.Pack(p.B, p.K, p.N)
	}

	u := productUnit{p: *p, b: b}
	threads := Threads()
	tile := len(use.tile) - 1
	u.rowUnits = pieces(p.M, unitRows, threads)
	u.rowUnits = max(1, min(u.rowUnits, p.M/leastUnitRows))
	u.rows = (p.M + u.rowUnits - 1) / u.rowUnits
	u.rows = (u.rows + tile - 1) / tile * tile
	u.rowUnits = (p.M + u.rows - 1) / u.rows
	columnUnits := 1
	if u.rowUnits < threads {
		columnUnits = (2*threads + u.rowUnits - 1) / u.rowUnits
	}
	u.panels = (b.panels() + columnUnits - 1) / columnUnits
	columnUnits = (b.panels() + u.panels - 1) / u.panels
	if columnUnits > 1 {
		u.a = packedRowsPool.Get().(*packedRows)
		defer packedRowsPool.Put(u.a)
		u.a.pack(p.A, 0, p.M, 0, p.K, blockDepth(p.K))
	}
	productUnits.run(u.rowUnits*columnUnits, 1, u)
}

var productUnits = tiled(func(u *productUnit, unit, _ int) {
	p, b := &u.p, u.b
	i := unit % u.rowUnits * u.rows
	iEnd := min(i+u.rows, p.M)
	j := unit / u.rowUnits * u.panels
	jEnd := min(j+u.panels, b.panels())

	a, first := u.a, i // the packed rows begin at first
	if a == nil {
		a = packedRowsPool.Get().(*packedRows)
		defer packedRowsPool.Put(a)
	} else {
		first = 0
	}
	most := blockDepth(p.K)
	for l := 0; l < p.K; l += most {
		depth := min(most, p.K-l)
		from := l
		if u.a == nil {
			a.pack(p.A, i, iEnd, l, l+depth, most)
			from = 0
		}
		done := j
		for q := j; q < jEnd; q++ {
			a.multiply(p, b.panel(l, q), b.panel(l, min(q+1, jEnd-1)), i-first, i, iEnd, from, depth, q*use.panel, l == 0)
			if l+depth >= p.K && ((q+1-done)*use.panel >= groupColumns || q+1 == jEnd) {
				p.After.apply(p.C, p.N, i, iEnd, done*use.panel, min((q+1)*use.panel, p.N))
				done = q + 1
			}
		}
	}
})

// nextRows returns how many of the rows that are left the next tile takes: a full one, but where that leaves only a few,
// about half of them, since a tile of one row runs at the speed of one of four.
func nextRows(left int) int {
	full := len(use.tile) - 1
	switch {
	case left <= full:
		return left
	case left < full+4:
		return (left + 1) / 2
	}
	return full
}

// packedRows are rows of a, laid out for tiles: block after block of columns, in each tile after tile. A
// tile's rows lie one after the other where a's do, its columns where a's do.
type packedRows struct {
	rows, k  int
	byColumn bool
	data     []float32
	edge     []float32 // a tile that is not as wide as the others
}

var packedRowsPool = sync.Pool{New: func() any { return &packedRows{edge: make([]float32, 32*32)} }}

// pack lays out rows i:iEnd and columns l:lEnd of x, at most so many columns a block.
func (a *packedRows) pack(x Matrix, i, iEnd, l, lEnd, most int) {
	tile := len(use.tile) - 1
	a.rows, a.k, a.byColumn = (iEnd-i+tile-1)/tile*tile, lEnd-l, x.Col != 1
	if n := a.rows * a.k; cap(a.data) < n {
		a.data = Floats(n)
	}
	for block := 0; block < a.k; block += most {
		depth := min(most, a.k-block)
		for t, rows := 0, 0; t < iEnd-i; t += rows {
			rows = nextRows(iEnd - i - t)
			to := a.data[block*a.rows+t*depth:][:rows*depth]
			if a.byColumn {
				x.packColumns(to, i+t, l+block, rows, depth)
				continue
			}
			for r := range rows {
				copy(to[r*depth:(r+1)*depth], x.Data[(i+t+r)*x.Row+l+block:])
			}
		}
	}
}

// packColumns writes to out [depth rows] the columns l:l+depth of rows i:i+rows, of a matrix whose columns lie together.
func (x Matrix) packColumns(out []float32, i, l, rows, depth int) {
	from, c := x.Data[l*x.Col+i:], 0
	// A register is wider than a column: as many go so as have room for it on both sides. What is too much, the next
	// column overwrites.
	if wide := use.panel / 2; len(from) >= wide && len(out) >= wide {
		c = min(depth, (len(from)-wide)/x.Col+1, (len(out)-wide)/rows+1)
		use.copyNarrow(&out[0], &from[0], x.Col, c, rows)
	}
	for ; c < depth; c++ {
		copy(out[c*rows:(c+1)*rows], from[c*x.Col:])
	}
}

// multiply takes rows i:iEnd of c through one panel: the packed rows from first on, of the block at column l. next is the
// panel after it.
func (a *packedRows) multiply(p *Product, panel, next []float32, first, i, iEnd, l, depth, j int, begin bool) {
	cols := min(use.panel, p.N-j)
	for rows := 0; i < iEnd; i, first = i+rows, first+rows {
		rows = nextRows(iEnd - i)
		at := a.data[l*a.rows+first*depth:]
		aRow, aCol := depth, 1
		if a.byColumn {
			aRow, aCol = 1, rows
		}
		c, cRow := p.C[i*p.N+j:], p.N
		from, fromRow := c, p.N
		if begin && p.Start == StartAtZero {
			from, fromRow = zeros[:], 0
		}
		if begin && p.Start == StartAtBias {
			from, fromRow = p.Bias[j:], 0
		}
		if cols == use.panel {
			use.tile[rows](&c[0], &from[0], cRow, fromRow, &at[0], aRow, aCol, &panel[0], depth, &next[0])
			next = next[min(8*depth, len(next)-1):]
			continue
		}
		edge := a.edge
		for r := range rows {
			copy(edge[r*use.panel:], from[r*fromRow:][:cols])
		}
		use.tile[rows](&edge[0], &edge[0], use.panel, use.panel, &at[0], aRow, aCol, &panel[0], depth, &next[0])
		for r := range rows {
			copy(c[r*cRow:][:cols], edge[r*use.panel:])
		}
	}
}

// zeros are what a row of a tile starts at where it starts at nothing.
var zeros [32]float32
