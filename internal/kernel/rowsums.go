package kernel

import "sync"

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
