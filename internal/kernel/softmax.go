package kernel

// Softmax replaces row by exp(row)/Σexp(row). It subtracts the maximum first, so that nothing overflows.
func Softmax(row []float32) {
	if len(row) == 0 {
		return
	}
	top := row[0]
	for _, x := range row {
		top = max(top, x)
	}
	var sum float64
	for i, x := range row {
		e := exp(float64(x - top))
		row[i] = float32(e)
		sum += e
	}
	scale := float32(1 / sum)
	for i := range row {
		row[i] *= scale
	}
}

// SoftmaxBackward replaces d, the gradient at y = Softmax(x), by the gradient at x: y·(d − Σy·d).
func SoftmaxBackward(d, y []float32) {
	y = y[:len(d)]
	var dot float64
	for i, g := range d {
		dot += float64(g * y[i])
	}
	mean := float32(dot)
	for i, g := range d {
		d[i] = y[i] * (g - mean)
	}
}
