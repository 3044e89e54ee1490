package kernel

import "math"

// Softmax replaces row by exp(row)/Σexp(row). It subtracts the maximum first, to avoid overflow.
func Softmax(row []float32) { use.softmax(row) }

// SoftmaxBackward replaces d, the gradient of y = Softmax(x), by the gradient of x: y·(d − Σy·d).
func SoftmaxBackward(d, y []float32) { use.softmaxBackward(d, y[:len(d)]) }

func softmaxPlain(row []float32) {
	top := maximumPlain(row)
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

func softmaxBackwardPlain(d, y []float32) {
	var dot float64
	for i, g := range d {
		dot += float64(g * y[i])
	}
	mean := float32(dot)
	for i, g := range d {
		d[i] = y[i] * (g - mean)
	}
}

func maximumPlain(row []float32) float32 {
	top := float32(math.Inf(-1))
	for _, x := range row {
		top = max(top, x)
	}
	return top
}

func expsPlain(row []float32, shift float32) float32 {
	var sum float64
	for i, x := range row {
		e := exp(float64(x - shift))
		row[i] = float32(e)
		sum += e
	}
	return float32(sum)
}

func dotPlain(x, y []float32) float32 {
	var sum float32
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func softmaxGradientPlain(d, y []float32, mean float32) {
	for i, v := range d {
		d[i] = y[i] * (v - mean)
	}
}
