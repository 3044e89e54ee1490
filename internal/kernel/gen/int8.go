package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// int8s are the loops before and after a product of 8-bit integers.
func int8s(a *isa) {
	a.extremes()
	if a.avx512() {
		a.quantize("quantizeBytes", "bytes", func(v reg.VecVirtual, out operand.Mem) { a.VPMOVUSDB(v, out) })
	} else {
		a.quantize("quantizeWords", "words of 16 bits", func(v reg.VecVirtual, out operand.Mem) {
			upper := a.XMM()
			a.VEXTRACTI128(operand.U8(1), v, upper)
			a.VPACKUSDW(upper, v.AsX(), v.AsX())
			a.VMOVDQU(v.AsX(), out)
		})
	}
	a.dequantize()
}

// addWords adds to sum the products of the two 16-bit integers of each lane of x and y.
func (a *isa) addWords(y, x, sum reg.VecVirtual) {
	products := a.vector()
	a.VPMADDWD(y, x, products)
	a.VPADDD(products, sum, sum)
}

// extremes finds the smallest and the largest element of a row.
func (a *isa) extremes() {
	a.function("extremes", "(row []float32) (low, high float32)",
		"returns the smallest and the largest element or 0; NaN if one is not finite.")
	row, n := a.slice("row"), a.length("row")
	low, high, lost := a.zeros(2), a.zeros(2), a.zero()
	zero := a.zero()
	a.unrolled(n, 2, func(at place, k int) {
		v := a.load(at(row))
		a.VMINPS(v, low[k], low[k])
		a.VMAXPS(v, high[k], high[k])
		a.VFMADD231PS(zero, v, lost)
	})
	a.VMINPS(low[1], low[0], low[0])
	a.VMAXPS(high[1], high[0], high[0])
	a.fold(low[0], a.VMINPS)
	a.fold(high[0], a.VMAXPS)
	a.fold(lost, a.VADDPS)
	a.VADDSS(lost.AsX(), low[0].AsX(), low[0].AsX())
	a.VADDSS(lost.AsX(), high[0].AsX(), high[0].AsX())
	a.storeResult(low[0], a.ReturnIndex(0))
	a.storeResult(high[0], a.ReturnIndex(1))
	a.end()
}

// quantize writes a function that rounds a row of values to unsigned 8-bit integers; write stores a register of them.
func (a *isa) quantize(name, stored string, write func(v reg.VecVirtual, out operand.Mem)) {
	a.function(name, "(out *float32, x []float32, inverse float32, zero int32)",
		"writes x·inverse, rounded, plus zero to out as "+stored+", from 0 to 255; of the last register all lanes.")
	out, x, n := a.Load(a.Param("out"), a.GP64()), a.slice("x"), a.length("x")
	inverse, zero := a.spread("inverse"), a.spread("zero")
	least, most := a.zero(), a.vector()
	a.VBROADCASTSS(a.inMemory(math.Float32frombits(255)), most)
	each := a.lanes // bytes of out for a register of values
	if !a.avx512() {
		each *= 2
	}
	a.over(n, func(i reg.Register) {
		v := a.load(element(x, i))
		a.VMULPS(inverse, v, v)
		a.VCVTPS2DQ(v, v)
		a.VPADDD(zero, v, v)
		a.VPMAXSD(least, v, v)
		a.VPMINSD(most, v, v)
		write(v, operand.Mem{Base: out})
		a.ADDQ(operand.U8(each), out)
	})
	a.end()
}

// dequantize turns the sums of a row of a product into its values.
func (a *isa) dequantize() {
	a.function("dequantize", "(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32)",
		"turns the bits of c, an int32 each, into (c − zero·sums)·(scale·scales) + bias.")
	c, n := a.slice("c"), a.length("c")
	sums, scales, bias := a.slice("sums"), a.slice("scales"), a.slice("bias")
	zero, scale := a.spread("zero"), a.spread("scale")
	a.over(n, func(i reg.Register) {
		v, of, by := a.load(element(c, i)), a.load(element(sums, i)), a.load(element(scales, i))
		a.VPMULLD(zero, of, of)
		a.VPSUBD(of, v, v)
		a.VCVTDQ2PS(v, v)
		a.VMULPS(scale, by, by)
		a.VMULPS(by, v, v)
		a.VADDPS(a.load(element(bias, i)), v, v)
		a.store(v, element(c, i))
	})
	a.end()
}
