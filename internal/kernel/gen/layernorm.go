package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerNorm are the loops over one row of layer normalisation.
func layerNorm(a *isa) {
	layerNormForward(a)
	layerNormSums(a)
	layerNormGradient(a)
}

// layerNormForward reads the row, which is in the L1 cache, three times: for an approximate mean, for the sums of the
// deviations from it and of their squares, which give the exact mean and the variance, and to normalise.
func layerNormForward(a *isa) {
	a.function("layerNorm", "(out, x, gain, bias []float32, epsilon float32) (mean, scale float32)",
		"normalises a row to out, and returns its mean and 1/√(variance+epsilon).")
	out, x, gain, bias, n := a.slice("out"), a.slice("x"), a.slice("gain"), a.slice("bias"), a.length("x")
	count := a.XMM()
	a.VXORPS(count, count, count)
	a.VCVTSI2SSQ(n, count, count)

	sums := a.zeros(4)
	a.unrolled(n, 4, func(at place, k int) {
		a.VADDPS(a.load(at(x)), sums[k], sums[k])
	})
	mean := a.sumOf(sums)
	a.VDIVSS(count, mean.AsX(), mean.AsX())
	a.spreadLowest(mean)

	around, squares := a.zeros(4), a.zeros(4)
	a.unrolled(n, 4, func(at place, k int) {
		v := a.load(at(x))
		a.VSUBPS(mean, v, v)
		a.only(v)
		a.VADDPS(v, around[k], around[k])
		a.VFMADD231PS(v, v, squares[k])
	})
	off, scale := a.sumOf(around), a.sumOf(squares)
	a.VDIVSS(count, off.AsX(), off.AsX())
	a.VDIVSS(count, scale.AsX(), scale.AsX())
	a.VADDSS(off.AsX(), mean.AsX(), mean.AsX())
	a.VFNMADD231SS(off.AsX(), off.AsX(), scale.AsX()) // the variance, which rounding must not make negative
	zero := a.XMM()
	a.VXORPS(zero, zero, zero)
	a.VMAXSS(scale.AsX(), zero, scale.AsX()) // NaN where it is NaN
	a.VADDSS(a.spread("epsilon").AsX(), scale.AsX(), scale.AsX())
	a.VSQRTSS(scale.AsX(), scale.AsX(), scale.AsX())
	one := a.XMM()
	a.VMOVSS(a.ConstData(a.label("one"), operand.F32(1)), one)
	a.VDIVSS(scale.AsX(), one, scale.AsX())
	a.storeResult(mean, a.Return("mean"))
	a.storeResult(scale, a.Return("scale"))
	a.spreadLowest(mean)
	a.spreadLowest(scale)

	a.over(n, func(i reg.Register) {
		v, b := a.load(element(x, i)), a.load(element(bias, i))
		a.VSUBPS(mean, v, v)
		a.VMULPS(scale, v, v)
		a.VFMADD231PS(a.load(element(gain, i)), v, b)
		a.store(b, element(out, i))
	})
	a.end()
}

// layerNormSums is the first half of a row's backward.
func layerNormSums(a *isa) {
	a.function("layerNormSums", "(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32)",
		"adds a row's gradients of gain and bias to dGain and dBias, and returns the sums of g = dOut·gain and of g "+
			"times the normalised row.")
	dGain, dBias := a.slice("dGain"), a.slice("dBias")
	x, gain, dOut, n := a.slice("x"), a.slice("gain"), a.slice("dOut"), a.length("x")
	mean, scale := a.spread("mean"), a.spread("scale")
	sums, dots := a.zeros(2), a.zeros(2)
	a.unrolled(n, 2, func(at place, k int) {
		v, d := a.load(at(x)), a.load(at(dOut))
		a.VSUBPS(mean, v, v)
		a.VMULPS(scale, v, v)
		sum := a.load(at(dGain))
		a.VFMADD231PS(v, d, sum)
		a.store(sum, at(dGain))
		sum = a.load(at(dBias))
		a.VADDPS(d, sum, sum)
		a.store(sum, at(dBias))
		g := a.load(at(gain))
		a.VMULPS(d, g, g)
		a.VADDPS(g, sums[k], sums[k])
		a.VFMADD231PS(g, v, dots[k])
	})
	a.storeResult(a.sumOf(sums), a.Return("sum"))
	a.storeResult(a.sumOf(dots), a.Return("dot"))
	a.end()
}

// layerNormGradient is the second half.
func layerNormGradient(a *isa) {
	a.function("layerNormGradient", "(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32)",
		"adds scale·(g − meanG − n·meanGN) to dx, with g = dOut·gain and n the normalised row.")
	dx, x, gain, dOut, n := a.slice("dx"), a.slice("x"), a.slice("gain"), a.slice("dOut"), a.length("x")
	mean, scale, meanG, meanGN := a.spread("mean"), a.spread("scale"), a.spread("meanG"), a.spread("meanGN")
	a.over(n, func(i reg.Register) {
		v, g, d := a.load(element(x, i)), a.load(element(gain, i)), a.load(element(dx, i))
		a.VSUBPS(mean, v, v)
		a.VMULPS(scale, v, v)
		a.VMULPS(a.load(element(dOut, i)), g, g)
		a.VSUBPS(meanG, g, g)
		a.VFNMADD231PS(v, meanGN, g)
		a.VFMADD231PS(g, scale, d)
		a.store(d, element(dx, i))
	})
	a.end()
}
