package kernel

// Dot64 returns Σ x·y in float64, in which the products are exact, as four independent sums. y is not shorter.
func Dot64(x, y []float32) float64 {
	var s [4]float64
	whole := len(x) &^ 3
	y = y[:len(x)]
	if whole > 0 {
		use.dot64(&s, x[:whole], y)
	}
	for i := whole; i < len(x); i++ {
		s[0] += float64(x[i]) * float64(y[i])
	}
	return s[0] + s[1] + s[2] + s[3]
}

// dot64Plain adds to sums the products of every fourth pair of numbers, from the first, second, third and fourth on.
func dot64Plain(sums *[4]float64, x, y []float32) {
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	y = y[:len(x)]
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		s0 += float64(x[0]) * float64(y[0])
		s1 += float64(x[1]) * float64(y[1])
		s2 += float64(x[2]) * float64(y[2])
		s3 += float64(x[3]) * float64(y[3])
	}
	*sums = [4]float64{s0, s1, s2, s3}
}
