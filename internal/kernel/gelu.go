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

var geluBackwardTiles = tiled(func(a *[3][]float32, lo,
	hi int) {
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
