package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// measure are the loops that measure the processor's peak speed.
func measure(a *isa) {
	// Sums in all available registers hide the instruction's latency.
	sums := a.registers - 4
	a.rounds(sums, "multiplyAdds", "fused multiply-adds", func(y, x, sum reg.VecVirtual) { a.VFMADD231PS(y, x, sum) })
	if a.avx512() {
		a.rounds(sums, "pairMultiplyAdds", "multiply-adds of pairs of bfloat16", a.addPairs)
		a.rounds(sums, "byteMultiplyAdds", "multiply-adds of four bytes",
			func(y, x, sum reg.VecVirtual) { a.VPDPBUSD(y, x, sum) })
	}
	a.rounds(sums, "wordMultiplyAdds", "multiply-adds of two words, in two instructions", a.addWords)

	a.function("readAll", "(x []float32)", "reads x, whose length is a multiple of 256.")
	at, left := a.slice("x"), a.length("x")
	a.Label("block")
	for i := range 256 / a.lanes {
		a.VMOVUPS(operand.Mem{Base: at, Disp: 4 * a.lanes * i}, a.vector())
	}
	a.ADDQ(operand.U32(4*256), at)
	a.SUBQ(operand.U32(256), left)
	a.JNZ(operand.LabelRef("block"))
	a.end()
}

// rounds writes the function called name: rounds of one instruction for each sum, independent of each other. doc names
// the instructions.
func (a *isa) rounds(sums int, name, doc string, multiplyAdd func(y, x, sum reg.VecVirtual)) {
	a.function(name, "(times int)", fmt.Sprintf("runs rounds of %d independent %s in registers.", sums, doc))
	times := a.Load(a.Param("times"), a.GP64())
	x, y := a.zero(), a.zero()
	var sum []reg.VecVirtual
	for range sums {
		sum = append(sum, a.zero())
	}
	a.Label("round")
	for _, s := range sum {
		multiplyAdd(x, y, s)
	}
	a.DECQ(times)
	a.JNZ(operand.LabelRef("round"))
	a.end()
}
