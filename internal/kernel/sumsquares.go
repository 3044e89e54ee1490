package kernel

// SumSquares returns Σx², the same at any number of threads.
func SumSquares(x []float32) float64 {
	sums := make([]float64, (len(x)+elementTile-1)/elementTile)
	Parallel(len(x), elementTile, func(lo, hi int) { sums[lo/elementTile] = sumSquares(x[lo:hi]) })
	var sum float64
	for _, s := range sums {
		sum += s
	}
	return sum
}

// sumSquares has four sums, which do not wait for each other.
func sumSquares(x []float32) float64 {
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
