package kernel

func init() {
	neon.maximum, neon.exps = maximumNEON, expsNEON
	neon.softmax, neon.softmaxBackward = softmaxNEON, softmaxBackwardNEON
	neon.gelu, neon.geluGradient, neon.geluBackward = geluNEON, geluGradientNEON, geluBackwardNEON
	neon.tanh = tanhNEON
}

// softmaxNEON replaces row by exp(row)/Σexp(row).
func softmaxNEON(row []float32) {
	sum := expsNEON(row, maximumNEON(row))
	scaleNEON(row, 1/sum)
}

// softmaxBackwardNEON replaces d by y·(d − Σy·d); y is not shorter.
func softmaxBackwardNEON(d, y []float32) { softmaxGradientNEON(d, y, dotNEON(d, y)) }

// maximumNEON returns the largest element: -Inf of an empty row, NaN where there is one.
//
//go:noescape
func maximumNEON(row []float32) float32

// expsNEON replaces row by exp(row−shift) and returns the sum.
//
//go:noescape
func expsNEON(row []float32, shift float32) float32

// geluNEON writes x·Φ(x) to out, which is not shorter.
//
//go:noescape
func geluNEON(out, x []float32)

// geluGradientNEON multiplies d by Φ(x) + x·φ(x).
//
//go:noescape
func geluGradientNEON(d, x []float32)

// geluBackwardNEON adds dOut·(Φ(x) + x·φ(x)) to dx.
//
//go:noescape
func geluBackwardNEON(dx, x, dOut []float32)

// tanhNEON writes the hyperbolic tangent of x to out, which is not shorter.
//
//go:noescape
func tanhNEON(out, x []float32)
