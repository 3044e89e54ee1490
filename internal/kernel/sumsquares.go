package kernel

import "sync"

// SumSquaresOfRows returns Σx² of rows [V D], without underflow: it is 0 only if all of x is. It is the same for any
// number of threads. If touched [V] is not nil, only the rows where it is not 0 are read: the result has the same bits
// if all others are zeros.
func SumSquaresOfRows(x []float32, d int, touched []float32) float64 {
	if len(x) == 0 {
		return 0
	}
	sums := squareSumsPool.Get().(*[]float64)
	*sums = append((*sums)[:0], make([]float64, SquareTiles(len(x), d))...)
	sumSquaresOfTiles(*sums, x, d, touched)
	var sum float64
	for _, s := range *sums {
		sum += s
	}
	squareSumsPool.Put(sums)
	return sum
}

// SquareTile is the number of values in a tile of rows of length d, whose squares SumSquaresOfRows sums by themselves
// before it adds the sums of all tiles, first to last.
func SquareTile(d int) int { return max(1, elementTile/d) * d }

// SquareTiles returns the number of tiles of n values in rows of length d.
func SquareTiles(n, d int) int { return (n + SquareTile(d) - 1) / SquareTile(d) }

// SumSquaresOfTiles sets sums to Σx² of each tile of rows [V D], which begin with one.
func SumSquaresOfTiles(sums []float64, x []float32, d int) { sumSquaresOfTiles(sums, x, d, nil) }

func sumSquaresOfTiles(sums []float64, x []float32, d int, touched []float32) {
	tile := SquareTile(d) / d
	sumSquaresTiles.run(len(x)/d, tile, sumSquaresArgs{sums, x, touched, d, tile})
}

var squareSumsPool = sync.Pool{New: func() any { return new([]float64) }}

type sumSquaresArgs struct {
	sums       []float64 // of the tiles
	x, touched []float32
	d, tile    int
}

var sumSquaresTiles = tiled(func(a *sumSquaresArgs, lo, hi int) {
	var sum float64
	for i := lo; i < hi; i++ {
		if a.touched == nil || a.touched[i] != 0 {
			sum += use.sumSquares(a.x[i*a.d : (i+1)*a.d])
		}
	}
	a.sums[lo/a.tile] = sum
})

// sumSquaresPlain has four independent sums.
func sumSquaresPlain(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return s0 + s1 + s2 + s3
}
