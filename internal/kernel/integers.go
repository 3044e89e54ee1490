package kernel

// Integers are the rows of a matrix [n k] as Int8 rounds the columns of a product's B: values from -127 to 127, and a
// scale for each row. A row's integers times its scale are its values.
type Integers struct {
	Data   []int8    // [n k]
	Scales []float32 // [n]; finite, 0 for a row of zeros
}

// MaxScale is the largest scale of integers whose values are finite.
const MaxScale = float32(0x1p127 / 127)

// RoundRows rounds the rows of x [n k].
func RoundRows(x Matrix, n, k int) Integers {
	to := Integers{make([]int8, n*k), make([]float32, n)}
	Parallel(n, rowTile, func(lo, hi int) {
		inverse := make([]float32, rowTile)
		for i := lo; i < hi; i += rowTile {
			end := min(i+rowTile, hi)
			x.roundRows(to.Data[i*k:end*k], to.Scales[i:end], inverse[:end-i], i, k)
		}
	})
	return to
}

// roundRows rounds rows of x, from row first on, to ints [rows k], and sets their scales. inverse [rows] is scratch
// memory.
func (x Matrix) roundRows(ints []int8, scales, inverse []float32, first, k int) {
	clear(inverse)
	for l := range k {
		column := x.Data[l*x.Col+first*x.Row:]
		for r, most := range inverse {
			inverse[r] = max(most, abs(column[r*x.Row]))
		}
	}
	for r, most := range inverse {
		scales[r] = most / 127
		inverse[r] = inverted(scales[r])
	}
	for l := range k {
		column := x.Data[l*x.Col+first*x.Row:]
		for r, by := range inverse {
			ints[r*k+l] = int8(roundInt(column[r*x.Row]*by, -127, 127))
		}
	}
}

// PackIntegers lays out a matrix [k n] for products of Int8, of whose columns b has the integers, as Pack lays out the
// values that they were rounded from. It panics if k is larger than MaxInt8Depth.
func (p *Packed) PackIntegers(b Integers, k, n int) {
	if len(b.Data) != k*n || len(b.Scales) != n {
		panic("kernel: integers of other dimensions")
	}
	p.k, p.n, p.precision = k, n, Int8
	p.growInts()
	copy(p.scales, b.Scales)
	packIntegers.run(p.panels(), panelGroup, integerArgs{p, b.Data})
}

type integerArgs struct {
	to   *Packed
	ints []int8
}

var packIntegers = tiled(func(a *integerArgs, lo, hi int) {
	for j := lo; j < hi; j++ {
		first, cols := a.to.columnsOf(j)
		a.to.packInts(a.ints[first*a.to.k:(first+cols)*a.to.k], j)
	}
})

// GatherIntegers adds to each row of out [T D] the row of table [V D] with its index in rows.
func GatherIntegers[I int8 | int32](out []float32, table Integers, rows []I, d int) {
	integerGathers.run(len(rows), rowTile, integerGather{out, table, indicesOf(rows), d})
}

type integerGather struct {
	out   []float32
	table Integers
	rows  rowIndices
	d     int
}

var integerGathers = tiled(func(a *integerGather, lo, hi int) {
	for i := lo; i < hi; i++ {
		r := a.rows.at(i)
		out, scale := a.out[i*a.d:(i+1)*a.d], a.table.Scales[r]
		for j, q := range a.table.Data[r*a.d : (r+1)*a.d] {
			out[j] += float32(scale * float32(q)) // rounded before the sum on every processor
		}
	}
})
