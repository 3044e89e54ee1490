package kernel

// rowTile is how many rows of packed states one goroutine takes at a time, columnTile how many columns where sums run
// down the rows, elementTile how many elements where neither matters.
const (
	rowTile     = 16
	columnTile  = 64
	elementTile = 8192
)

// Add adds x to out.
func Add(out, x []float32) { addRows.run(len(x), elementTile, [2][]float32{out, x}) }

var addRows = tiled(func(a *[2][]float32, lo, hi int) { use.addScaled(a[0][lo:hi], a[1][lo:hi], 1) })

func addScaledPlain(to, from []float32, by float32) { blas.Saxpy(len(from), by, from, 1, to, 1) }

// Repeat writes row to each row of out [T D], D = len(row).
func Repeat(out, row []float32) {
	d := len(row)
	Parallel(len(out)/d, rowTile, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out[i*d:(i+1)*d], row)
		}
	})
}

// SumRows adds the rows of x [T D] to sum [D], first to last.
func SumRows(sum, x []float32) {
	d := len(sum)
	Parallel(d, columnTile, func(lo, hi int) {
		for i := 0; i < len(x); i += d {
			blas.Saxpy(hi-lo, 1, x[i+lo:i+hi], 1, sum[lo:hi], 1)
		}
	})
}

// Gather adds to each row of out [T D] the row of table [V D] that rows names.
func Gather[I int8 | int32](out, table []float32, rows []I, d int) {
	Parallel(len(rows), rowTile, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			blas.Saxpy(d, 1, table[int(rows[i])*d:], 1, out[i*d:(i+1)*d], 1)
		}
	})
}

// Scatter adds each row of x [T D] to the row of table [V D] that rows names, first to last.
func Scatter[I int8 | int32](table, x []float32, rows []I, d int) {
	Parallel(d, columnTile, func(lo, hi int) {
		for i, r := range rows {
			to := table[int(r)*d:]
			blas.Saxpy(hi-lo, 1, x[i*d+lo:i*d+hi], 1, to[lo:hi], 1)
		}
	})
}
