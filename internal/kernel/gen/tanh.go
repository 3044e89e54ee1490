package main

import "github.com/mmcloughlin/avo/operand"

// tanh computes (1 − e)/(1 + e) with e = exp(−2|x|) = 2^n·2^r. To compute 1 − e without cancellation, 2^r − 1 has a
// polynomial of its own.
func tanh(a *isa) {
	const beyond = 10 // where the nearest float32 is 1
	a.function("tanh", "(out, x []float32)", "writes the hyperbolic tangent of x to out, which is not shorter.")
	out, x, n := a.slice("out"), a.slice("x"), a.length("x")
	one, two, limit := a.constant(1), a.constant(2), a.constant(beyond)
	a.together(n, 2, func(at []place) {
		far := a.loads(at, x)
		for _, far := range far {
			a.withConstant(a.VANDPS, a.VANDPS_BCST, withoutSign, far, far)
			a.VMINPS(far, limit, far) // of a number and NaN, the latter
		}
		whole, rest, _ := a.split(far, -2*log2e[0])
		for i, far := range far {
			a.withConstant(a.VFMADD231PS, a.VFMADD231PS_BCST, -2*log2e[1], far, rest[i])
		}
		for i, less := range a.polynomials(rest, powerOf2[1:]) {
			a.VMULPS(rest[i], less, less) // 2^r − 1
			power, minus := a.vector(), a.vector()
			a.VPSLLD(operand.U8(23), whole[i], power)
			a.VPADDD(one, power, power) // 2^n: the exponent's bits are added
			a.VSUBPS(one, power, minus)
			a.VFMADD213PS(minus, power, less) // e − 1 = 2^n·(2^r − 1) + (2^n − 1)
			sum, signs := a.vector(), a.vector()
			a.VADDPS(two, less, sum)
			a.VDIVPS(sum, less, less) // −tanh(|x|)
			a.withConstant(a.VANDPS, a.VANDPS_BCST, withoutSign, less, less)
			a.withConstant(a.VANDPS, a.VANDPS_BCST, sign, a.load(at[i](x)), signs)
			a.VORPS(signs, less, less)
			a.store(less, at[i](out))
		}
	})
	a.end()
}
