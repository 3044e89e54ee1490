package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose is the copying of rows to columns. AVX-512 has no use for wider registers here: memory is the limit.
func transpose(a *isa) {
	if a.avx512() {
		return
	}
	a.function("transpose8", "(out, x *float32, outRow, xRow, times int)",
		"writes 8 rows of x, xRow values apart, to 8 columns of out, whose rows are outRow apart: 8·times columns of x to as many rows.")
	out, x := a.Load(a.Param("out"), a.GP64()), a.Load(a.Param("x"), a.GP64())
	outRow, xRow := a.Load(a.Param("outRow"), a.GP64()), a.Load(a.Param("xRow"), a.GP64())
	times := a.Load(a.Param("times"), a.GP64())
	a.SHLQ(operand.U8(2), outRow)
	a.SHLQ(operand.U8(2), xRow)
	three := a.GP64() // rows of x: 3·xRow
	a.LEAQ(operand.Mem{Base: xRow, Index: xRow, Scale: 2}, three)

	a.Label("block")
	lower := a.GP64() // rows 4 to 7
	a.LEAQ(operand.Mem{Base: x, Index: xRow, Scale: 4}, lower)
	var rows [8]reg.VecVirtual
	for i := range rows {
		m := operand.Mem{Base: x}
		if i >= 4 {
			m.Base = lower
		}
		switch i % 4 {
		case 1:
			m.Index, m.Scale = xRow, 1
		case 2:
			m.Index, m.Scale = xRow, 2
		case 3:
			m.Index, m.Scale = three, 1
		}
		rows[i] = a.YMM()
		a.VMOVUPS(m, rows[i])
	}
	// Columns of pairs of rows, then of four rows, each half of the register for itself.
	var pairs, fours [8]reg.VecVirtual
	for i := 0; i < 8; i += 2 {
		pairs[i], pairs[i+1] = a.YMM(), a.YMM()
		a.VUNPCKLPS(rows[i+1], rows[i], pairs[i])
		a.VUNPCKHPS(rows[i+1], rows[i], pairs[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			low, high := pairs[i+j], pairs[i+j+2]
			fours[i+2*j], fours[i+2*j+1] = a.YMM(), a.YMM()
			a.VSHUFPS(operand.U8(0x44), high, low, fours[i+2*j])
			a.VSHUFPS(operand.U8(0xee), high, low, fours[i+2*j+1])
		}
	}
	for i := range 8 {
		half := operand.U8(0x20 + i/4*0x11)
		column := a.YMM()
		a.VPERM2F128(half, fours[4+i%4], fours[i%4], column)
		a.VMOVUPS(column, operand.Mem{Base: out})
		a.ADDQ(outRow, out)
	}
	a.ADDQ(operand.U8(32), x)
	a.DECQ(times)
	a.JNZ(operand.LabelRef("block"))
	a.end()
}
