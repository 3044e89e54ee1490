package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumSquares adds in float64, where the square of a float32 neither underflows nor overflows.
func sumSquares(a *isa) {
	a.function("sumSquares", "(x []float32) float64", "returns Σx².")
	x, n := a.slice("x"), a.length("x")
	sums := a.zeros(4)
	a.unrolled(n, 2, func(at place, k int) {
		for half, v := range a.float64s(a.load(at(x))) {
			a.VFMADD231PD(v, v, sums[2*k+half])
		}
	})
	a.storeResult(a.sumOf64(sums), a.ReturnIndex(0))
	a.end()
}

// float64s returns the lower and the upper half of v's lanes as float64.
func (a *isa) float64s(v reg.VecVirtual) [2]reg.VecVirtual {
	lower, upper := a.vector(), a.vector()
	if a.avx512() {
		half := a.YMM()
		a.VEXTRACTF64X4(operand.U8(1), v, half)
		a.VCVTPS2PD(v.AsY(), lower)
		a.VCVTPS2PD(half, upper)
	} else {
		half := a.XMM()
		a.VEXTRACTF128(operand.U8(1), v, half)
		a.VCVTPS2PD(v.AsX(), lower)
		a.VCVTPS2PD(half, upper)
	}
	return [2]reg.VecVirtual{lower, upper}
}
