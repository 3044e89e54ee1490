package main

import "github.com/mmcloughlin/avo/operand"

// dot64 has four sums whatever the width of a register: their number is part of the result.
func dot64(a *isa) {
	if a.avx512() {
		return
	}
	a.function("dot64", "(sums *[4]float64, x, y []float32)",
		"adds to sums the products of every fourth pair of numbers: see dot64Plain.")
	x, y, n := a.slice("x"), a.slice("y"), a.length("x")
	to, sum := a.argument("sums"), a.YMM()
	a.VMOVUPD(operand.Mem{Base: to}, sum)
	loop, done := a.label("loop"), a.label("done")
	a.SHRQ(operand.U8(2), n)
	a.JZ(operand.LabelRef(done))
	a.Label(loop)
	u, v := a.YMM(), a.YMM()
	a.VCVTPS2PD(operand.Mem{Base: x}, u)
	a.VCVTPS2PD(operand.Mem{Base: y}, v)
	a.VFMADD231PD(u, v, sum)
	a.ADDQ(operand.U8(16), x)
	a.ADDQ(operand.U8(16), y)
	a.DECQ(n)
	a.JNZ(operand.LabelRef(loop))
	a.Label(done)
	a.VMOVUPD(sum, operand.Mem{Base: to})
	a.end()
}
