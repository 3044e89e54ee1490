package main

import (
	"math"

	"github.com/mmcloughlin/avo/reg"
)

// gelu are the loops of x·Φ(x), in which a is |x| and Q(a) = 1 − Φ(a) the normal distribution's tail.
func gelu(a *isa) {
	geluForward(a)
	geluGradient(a)
	geluBackward(a)
}

// geluRegisters are computed in step.
const geluRegisters = 3

// farthest is the distance from which Q and φ are rounded to 0: both are below 2^-125.
const farthest = 14

// tail are the coefficients of log2(2·Q(a))/a, a^0 first: with a relative error of Q of 2^-28.8 down to Q = 1/8, which
// grows as Q shrinks, up to 2^-22.8 at a = 7. Beyond 7 they fall faster than Q.
var tail = []float32{-1.15110409, -0.459224492, -0.0524174049, 0.00688453112, 8.34407037e-05, -0.000343677995,
	0.000106294916, -1.96228284e-05, 2.41157204e-06, -1.93483103e-07, 9.18604304e-09, -1.95723493e-10}

// geluForward computes max(x, 0) − a·Q(a), which is x·Φ(x) on both sides of 0 without cancellation.
func geluForward(a *isa) {
	a.function("gelu", "(out, x []float32)", "writes x·Φ(x) to out, which is not shorter.")
	out, x, n := a.slice("out"), a.slice("x"), a.length("x")
	none := a.vector()
	a.VBROADCASTSS(a.inMemory(sign), none) // -0: x·0 for a negative x
	a.together(n, geluRegisters, func(at []place) {
		far := a.distances(a.loads(at, x))
		exponent := a.polynomials(far, tail)
		whole, power := a.vectors(len(at)), a.vectors(len(at))
		for i := range at {
			a.VMULPS(far[i], exponent[i], power[i])
			a.VCVTPS2DQ(power[i], whole[i])
			rest := a.vector()
			a.VCVTDQ2PS(whole[i], rest)
			a.VFMSUB231PS(far[i], exponent[i], rest)
			exponent[i] = rest
		}
		q := a.halfPowers(whole, exponent, power)
		for i := range at {
			v := a.load(at[i](x))
			y, above := a.vector(), a.vector()
			a.VMAXPS(v, none, above) // of a number and NaN, the latter
			// x, not |x|: -Inf·0 is NaN, and +Inf minus a number is +Inf.
			a.withConstant(a.VMINPS, a.VMINPS_BCST, farthest, v, y)
			a.withConstant(a.VANDPS, a.VANDPS_BCST, withoutSign, y, y)
			a.VFNMADD231PS(y, q[i], above)
			a.store(above, at[i](out))
		}
	})
	a.end()
}

// sign is the sign bit, withoutSign all others.
var (
	sign        = math.Float32frombits(0x80000000)
	withoutSign = math.Float32frombits(0x7fffffff)
)

// distances overwrites x by |x|, farthest where it is farther or NaN.
func (a *isa) distances(x []reg.VecVirtual) []reg.VecVirtual {
	for _, x := range x {
		a.withConstant(a.VANDPS, a.VANDPS_BCST, withoutSign, x, x)
		a.withConstant(a.VMINPS, a.VMINPS_BCST, farthest, x, x)
	}
	return x
}

// bend are the coefficients of 2·e^(a²/2)·(Q(a) − a·φ(a)), a^0 first: to within 2^-27.6 once times e^(-a²/2)/2.
var bend = []float32{1.0, -1.59576845, 0.499985099, -0.265846342, 0.124554552, -0.0521811396, 0.019358987,
	-0.00613460783, 0.00156899577, -0.00030213772, 4.02120531e-05, -3.24780808e-06, 1.18737979e-07}

// slopes returns Φ(x) + x·φ(x), the derivative of x·Φ(x): t = Q(a) − a·φ(a) where x < 0, else 1 − t.
func (a *isa) slopes(at []place, x reg.Register, one reg.VecVirtual) []reg.VecVirtual {
	far := a.distances(a.loads(at, x))
	squares := a.vectors(len(at))
	for i := range at {
		a.VMULPS(far[i], far[i], squares[i])
	}
	whole, rest, power := a.split(squares, -math.Log2E/2)
	t := a.polynomials(far, bend)
	for i, half := range a.halfPowers(whole, rest, power) {
		v, zero := a.load(at[i](x)), a.vector()
		a.VSUBPS(v, v, zero) // NaN of NaN and of infinities, as x·φ(x) is
		a.VFMADD213PS(zero, half, t[i])
		other := a.vector()
		a.VSUBPS(t[i], one, other)
		t[i] = a.ifNegative(v, t[i], other)
	}
	return t
}

func geluGradient(a *isa) {
	a.function("geluGradient", "(d, x []float32)", "multiplies d by Φ(x) + x·φ(x).")
	d, x, n, one := a.slice("d"), a.slice("x"), a.length("d"), a.constant(1)
	a.together(n, geluRegisters, func(at []place) {
		for i, slope := range a.slopes(at, x, one) {
			a.VMULPS(a.load(at[i](d)), slope, slope)
			a.store(slope, at[i](d))
		}
	})
	a.end()
}

func geluBackward(a *isa) {
	a.function("geluBackward", "(dx, x, dOut []float32)", "adds dOut·(Φ(x) + x·φ(x)) to dx.")
	dx, x, dOut, n, one := a.slice("dx"), a.slice("x"), a.slice("dOut"), a.length("dx"), a.constant(1)
	a.together(n, geluRegisters, func(at []place) {
		for i, slope := range a.slopes(at, x, one) {
			sum := a.load(at[i](dx))
			a.VFMADD231PS(a.load(at[i](dOut)), slope, sum)
			a.store(sum, at[i](dx))
		}
	})
	a.end()
}

// ifNegative returns the lanes of yes where the sign bit of x is set, elsewhere those of no, which it overwrites.
func (a *isa) ifNegative(x, yes, no reg.VecVirtual) reg.VecVirtual {
	if a.avx512() {
		k := a.K()
		a.VPMOVD2M(x, k)
		a.VMOVAPS(yes, k, no)
	} else {
		a.VBLENDVPS(x, yes, no, no)
	}
	return no
}
