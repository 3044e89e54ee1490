package kernel

// rowTile is the number of rows of packed states in a tile, columnTile of columns for sums over rows, elementTile of
// elements for elementwise operations.
const (
	rowTile     = 16
	columnTile  = 64
	elementTile = 8192
)

// Add adds x to out.
func Add(out, x []float32) { addTiles.run(len(x), elementTile, [2][]float32{out, x}) }

var addTiles = tiled(func(a *[2][]float32, lo, hi int) { use.addScaled(a[0][lo:hi], a[1][lo:hi], 1) })

func addScaledPlain(to, from []float32, by float32) { blas.Saxpy(len(from), by, from, 1, to, 1) }

func scalePlain(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

// Repeat writes row to each row of out [T D], D = len(row).
func Repeat(out, row []float32) {
	if len(row) > 0 {
		repeatTiles.run(len(out)/len(row), rowTile, [2][]float32{out, row})
	}
}

var repeatTiles = tiled(func(a *[2][]float32, lo, hi int) {
	out, row := a[0], a[1]
	for i := lo; i < hi; i++ {
		copy(out[i*len(row):(i+1)*len(row)], row)
	}
})

// rowIndices are indices of rows of a table: one of the two is nil.
type rowIndices struct {
	small []int8
	large []int32
}

func indicesOf[I int8 | int32](rows []I) (n rowIndices) {
	switch rows := any(rows).(type) {
	case []int8:
		n.small = rows
	case []int32:
		n.large = rows
	}
	return n
}

func (n rowIndices) len() int { return len(n.small) + len(n.large) }

func (n rowIndices) at(i int) int {
	if n.small != nil {
		return int(n.small[i])
	}
	return int(n.large[i])
}

// tableArgs are the rows of x [T D] and the rows of a table [V D] with the indices rows.
type tableArgs struct {
	x, table []float32
	rows     rowIndices
	d        int
}

// Gather adds to each row of out [T D] the row of table [V D] with its index in rows.
func Gather[I int8 | int32](out, table []float32, rows []I, d int) {
	gatherTiles.run(len(rows), rowTile, tableArgs{out, table, indicesOf(rows), d})
}

var gatherTiles = tiled(func(a *tableArgs, lo, hi int) {
	for i := lo; i < hi; i++ {
		r := a.rows.at(i)
		use.addScaled(a.x[i*a.d:(i+1)*a.d], a.table[r*a.d:(r+1)*a.d], 1)
	}
})

// Scatter adds each row of x [T D] to the row of table [V D] with its index in rows, first to last.
func Scatter[I int8 | int32](table, x []float32, rows []I, d int) {
	scatterTiles.run(d, columnTile, tableArgs{x, table, indicesOf(rows), d})
}

var scatterTiles = tiled(func(a *tableArgs, lo, hi int) {
	for i := range a.rows.len() {
		r := a.rows.at(i)
		use.addScaled(a.table[r*a.d+lo:r*a.d+hi], a.x[i*a.d+lo:i*a.d+hi], 1)
	}
})
