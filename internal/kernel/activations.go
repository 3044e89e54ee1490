package kernel

import "math"

// GELU writes x·Φ(x) to out, which may be x, with Φ the normal distribution's cumulative function (Hendrycks & Gimpel
// 2016).
func GELU(out, x []float32) { geluTiles.run(len(x), elementTile, [2][]float32{out, x}) }

var geluTiles = tiled(func(a *[2][]float32, lo, hi int) { use.gelu(a[0][lo:hi], a[1][lo:hi]) })

// GELUBackward adds to dx the gradient of GELU's x, given the gradient dOut of its result: dOut·(Φ(x) + x·φ(x)).
func GELUBackward(dx, x, dOut []float32) {
	geluBackwardTiles.run(len(x), elementTile, [3][]float32{dx, x, dOut})
}

var geluBackwardTiles = tiled(func(a *[3][]float32, lo, hi int) {
	use.geluBackward(a[0][lo:hi], a[1][lo:hi], a[2][lo:hi])
})

func geluPlain(out, x []float32) {
	for i, v := range x {
		out[i] = v * cumulative(v)
	}
}

func geluGradientPlain(d, x []float32) {
	for i := range d {
		d[i] *= geluSlope(x[i])
	}
}

func geluBackwardPlain(dx, x, dOut []float32) {
	for i, d := range dOut {
		dx[i] += d * geluSlope(x[i])
	}
}

// geluSlope is the derivative of GELU, Φ(x) + x·φ(x).
func geluSlope(x float32) float32 {
	density := float32(exp(-0.5*float64(x)*float64(x)) / (math.Sqrt2 * math.SqrtPi))
	return cumulative(x) + x*density
}

// cumulative is Φ(x) = (1 + erf(x/√2))/2.
func cumulative(x float32) float32 { return float32(0.5 + 0.5*erf(float64(x)/math.Sqrt2)) }

// erf is math.Erf to within half the distance between float32 values just below 1, and five times as fast:
// x·p(x²)/q(x²), and ±1 where the difference from it is smaller than that. scripts/fixtures/erf.py fits p and q.
func erf(x float64) float64 {
	const (
		p0, p1, p2 = 1.128379022307376, 0.1927651434495736, 0.05306062727949778
		p3, p4, p5 = 0.0038683751500443674, 0.0002874806951116126, 2.034729405403448e-06
		q1, q2, q3 = 0.504165326479949, 0.11508507053118326, 0.015172390634122533
		q4, q5     = 0.0011881271935807384, 3.807065221931899e-05
		limit      = 3.92
	)
	if x > limit {
		return 1
	}
	if x < -limit {
		return -1
	}
	z := x * x
	z2, z4 := z*z, z*z*(z*z) // in independent pairs
	p := (p0 + p1*z) + (p2+p3*z)*z2 + (p4+p5*z)*z4
	q := (1 + q1*z) + (q2+q3*z)*z2 + (q4+q5*z)*z4
	return x * p / q
}

// GatedGELUBackward is the backward of Epilogue.Gate: d is the gradient at GELU(x)·gate and becomes that at x. dGate
// gets the gradient at gate.
func GatedGELUBackward(d, dGate, x, gate []float32) {
	gatedBackwardTiles.run(len(x), elementTile, [4][]float32{d, dGate, x, gate})
}

var gatedBackwardTiles = tiled(func(a *[4][]float32, lo, hi int) {
	d, dGate, x := a[0][lo:hi], a[1][lo:hi], a[2][lo:hi]
	use.gelu(dGate, x)
	use.multiply(dGate, d)
	use.multiply(d, a[3][lo:hi])
	use.geluGradient(d, x)
})

// multiplyPlain multiplies each number of x by that of by.
func multiplyPlain(x, by []float32) {
	by = by[:len(x)]
	for i, v := range by {
		x[i] *= v
	}
}

// Tanh writes the hyperbolic tangent of x to out, which may be x.
func Tanh(out, x []float32) { tanhTiles.run(len(x), elementTile, [2][]float32{out, x}) }

var tanhTiles = tiled(func(a *[2][]float32, lo, hi int) { use.tanh(a[0][lo:hi], a[1][lo:hi]) })

func tanhPlain(out, x []float32) {
	for i, v := range x {
		out[i] = float32(math.Tanh(float64(v)))
	}
}

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

// exp is math.Exp to within a relative error of 1e-8, less than float32's rounding, and twice as fast: 2^n·e^r with n
// whole and |r| <= ln(2)/2, and e^r by its Taylor series.
func exp(x float64) float64 {
	if !(x > -700 && x < 700) {
		return math.Exp(x) // neither 2^n nor 2^-n fits, or x is NaN
	}
	// Adding 3·2^51 rounds to a whole number, which is in the sum's lowest bits.
	const whole = 3 << 51
	n := x*math.Log2E + whole
	r := x - (n-whole)*math.Ln2
	r2 := r * r // in independent pairs
	series := (1 + r) + (1./2+r*(1./6))*r2 + ((1./24+r*(1./120))+(1./720+r*(1./5040))*r2)*(r2*r2)
	return series * math.Float64frombits((math.Float64bits(n)+1023)<<52)
}
