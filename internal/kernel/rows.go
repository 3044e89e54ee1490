package kernel

import (
	"slices"
	"sync"
)

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

func addScaledPlain(to, from []float32, by float32) {
	to = to[:len(from)]
	for i, v := range from {
		to[i] += by * v
	}
}

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

// tableArgs are the rows of x [T D] and the rows of a table [V D] with the indices rows.
type tableArgs struct {
	x, table []float32
	integers Integers // of the table, for GatherIntegers
	rows     []int32
	d        int
}

// Gather adds to each row of out [T D] the row of table [V D] with its index in rows.
func Gather(out, table []float32, rows []int32, d int) {
	gatherTiles.run(len(rows), rowTile, tableArgs{x: out, table: table, rows: rows, d: d})
}

var gatherTiles = tiled(func(a *tableArgs, lo, hi int) {
	for i := lo; i < hi; i++ {
		r := int(a.rows[i])
		use.addScaled(a.x[i*a.d:(i+1)*a.d], a.table[r*a.d:(r+1)*a.d], 1)
	}
})

// Scatter adds each row of x [T D] to the row of table [V D] with its index in rows, first to last.
func Scatter(table, x []float32, rows []int32, d int) {
	scatterTiles.run(d, columnTile, tableArgs{x: x, table: table, rows: rows, d: d})
}

var scatterTiles = tiled(func(a *tableArgs, lo, hi int) {
	for i, r := range a.rows {
		r := int(r)
		use.addScaled(a.table[r*a.d+lo:r*a.d+hi], a.x[i*a.d+lo:i*a.d+hi], 1)
	}
})

// SumRows adds the sum of the rows of x [T D] to sum [D]: the rows of each chunk first to last, then the chunks (see
// chunkSums).
func SumRows(sum, x []float32) {
	d := len(sum)
	if len(x) == 0 {
		return
	}
	s := newChunkSums(len(x)/d, d)
	sumRowsTiles.run(s.rows, s.chunk, sumRowsArgs{s, x})
	s.addTo(sum, 0)
	chunkSumsPool.Put(s)
}

type sumRowsArgs struct {
	sums *chunkSums
	x    []float32 // [T D]
}

var sumRowsTiles = tiled(func(a *sumRowsArgs, lo, hi int) {
	use.addRows(a.sums.of(lo), a.x[lo*a.sums.width:hi*a.sums.width])
})

func addRowsPlain(sum, x []float32) {
	for ; len(x) > 0; x = x[len(sum):] {
		for j, v := range x[:len(sum)] {
			sum[j] += v
		}
	}
}

// chunkSums are sums over chunks of rows, which goroutines compute concurrently. The chunks' ends are a function of the
// number of rows alone, so that the bits of the total do not depend on the number of threads.
type chunkSums struct {
	rows, width int
	chunk       int       // rows
	values      []float32 // [chunks width]
}

var chunkSumsPool = sync.Pool{New: func() any { return new(chunkSums) }}

// newChunkSums returns sums for that many rows, to be returned to chunkSumsPool.
func newChunkSums(rows, width int) *chunkSums {
	const shortest, most = 32, 64 // rows of a chunk, chunks
	s := chunkSumsPool.Get().(*chunkSums)
	s.rows, s.width, s.chunk = rows, width, max(shortest, (rows+most-1)/most)
	n := (rows + s.chunk - 1) / s.chunk * width
	if cap(s.values) < n {
		s.values = make([]float32, n)
	}
	s.values = s.values[:n]
	return s
}

// of returns the sum, set to zeros, of the chunk that starts at a row.
func (s *chunkSums) of(row int) []float32 {
	i := row / s.chunk * s.width
	sum := s.values[i : i+s.width]
	clear(sum)
	return sum
}

// addTo adds the chunks' sums of the columns from first on to sum, first to last.
func (s *chunkSums) addTo(sum []float32, first int) {
	addChunksTiles.run(len(sum), columnTile, addChunksArgs{s, sum, first})
}

type addChunksArgs struct {
	sums  *chunkSums
	to    []float32
	first int // column
}

var addChunksTiles = tiled(func(a *addChunksArgs, lo, hi int) {
	for i := a.first; i < len(a.sums.values); i += a.sums.width {
		use.addScaled(a.to[lo:hi], a.sums.values[i+lo:i+hi], 1)
	}
})

// Rotate rotates the pairs of numbers of each head of x [T D] by angles that grow with a token's position in its text
// (Su et al. 2021, "RoFormer"): number l of a head's first half with number l of its second. angles [longest d] has for
// each position the cosines of the d/2 pairs, then their sines. Text b is rows starts[b]:starts[b+1].
func Rotate(x, angles []float32, starts []int, heads, width int) {
	rotateTiles.run(starts[len(starts)-1], rowTile, rotateArgs{x, angles, starts, heads, width, 1})
}

// RotateBack is the inverse of Rotate, and its backward: the gradient at the result becomes that at x.
func RotateBack(d, angles []float32, starts []int, heads, width int) {
	rotateTiles.run(starts[len(starts)-1], rowTile, rotateArgs{d, angles, starts, heads, width, -1})
}

type rotateArgs struct {
	x, angles    []float32
	starts       []int
	heads, width int
	sign         float32
}

var rotateTiles = tiled(func(a *rotateArgs, lo, hi int) {
	text, _ := slices.BinarySearch(a.starts, lo+1) // the first text that begins after row lo
	text--
	d := a.width / a.heads
	for i := lo; i < hi; i++ {
		for i >= a.starts[text+1] {
			text++
		}
		angles := a.angles[(i-a.starts[text])*d:][:d]
		row := a.x[i*a.width : (i+1)*a.width]
		for h := 0; h < a.width; h += d {
			use.rotate(row[h:h+d/2], row[h+d/2:h+d], angles[:d/2], angles[d/2:], a.sign)
		}
	}
})

// rotatePlain rotates the points (x, y) of a head by angles with the given cosines and sines.
func rotatePlain(x, y, cos, sin []float32, sign float32) {
	y, cos, sin = y[:len(x)], cos[:len(x)], sin[:len(x)]
	for l, v := range x {
		s := sign * sin[l]
		x[l], y[l] = v*cos[l]-y[l]*s, y[l]*cos[l]+v*s
	}
}
