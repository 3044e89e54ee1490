package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// measure are the loops that find out how fast the processor is.
func measure(a *isa) {
	// As many sums as there are registers for hide the instruction's latency.
	sums := a.registers - 4
	a.function("multiplyAdds", "(times int)", "runs so many rounds of "+map[bool]string{false: "12", true: "28"}[a.avx512()]+" fused multiply-adds of registers that do not wait for each other.")
	times := a.Load(a.Param("times"), a.GP64())
	x, y := a.zero(), a.zero()
	var sum []reg.VecVirtual
	for range sums {
		sum = append(sum, a.zero())
	}
	a.Label("round")
	for _, s := range sum {
		a.VFMADD231PS(x, y, s)
	}
	a.DECQ(times)
	a.JNZ(operand.LabelRef("round"))
	a.end()

	a.function("readAll", "(x []float32)", "reads x, whose length is a multiple of 256, and does nothing with it.")
	at, left := a.slice("x"), a.length("x")
	a.Label("block")
	for i := range 256 / a.lanes {
		a.VMOVUPS(operand.Mem{Base: at, Disp: 4 * a.lanes * i}, sum[i%4])
	}
	a.ADDQ(operand.U32(4*256), at)
	a.SUBQ(operand.U32(256), left)
	a.JNZ(operand.LabelRef("block"))
	a.end()
}
