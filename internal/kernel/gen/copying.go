package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// copying are the loops that lay out rows for tiles.
func copying(a *isa) {
	a.function("copyWide", "(out, x *float32, xRow, rows int)",
		"copies rows as wide as two registers, with row stride xRow, to out without gaps.")
	a.copies(2, func(out reg.Register) { a.ADDQ(operand.U32(4*2*a.lanes), out) })

	a.function("copyNarrow", "(out, x *float32, xRow, rows, cols int)",
		"copies rows of cols values, at most a register's, with row stride xRow, to out without gaps. It reads and "+
			"writes a whole register a row.")
	cols := a.Load(a.Param("cols"), a.GP64())
	a.SHLQ(operand.U8(2), cols)
	a.copies(1, func(out reg.Register) { a.ADDQ(cols, out) })

	if !a.avx512() { // bound by memory: wider registers are not faster
		transpose8(a)
	}
}

// copies writes the loop over rows of some registers; next advances out to the next row.
func (a *isa) copies(registers int, next func(out reg.Register)) {
	out, x := a.Load(a.Param("out"), a.GP64()), a.Load(a.Param("x"), a.GP64())
	xRow, rows := a.Load(a.Param("xRow"), a.GP64()), a.Load(a.Param("rows"), a.GP64())
	a.SHLQ(operand.U8(2), xRow)
	loop := a.label("loop")
	a.Label(loop)
	for r := range registers {
		v := a.vector()
		a.VMOVUPS(operand.Mem{Base: x, Disp: 4 * a.lanes * r}, v)
		a.VMOVUPS(v, operand.Mem{Base: out, Disp: 4 * a.lanes * r})
	}
	a.ADDQ(xRow, x)
	next(out)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef(loop))
	a.end()
}

// transpose8 copies rows to columns.
func transpose8(a *isa) {
	a.function("transpose8", "(out, x *float32, outRow, xRow, times int)",
		"writes 8 rows of x, with row stride xRow, to 8 columns of out, with row stride outRow: 8·times columns of "+
			"x to as many rows.")
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
	// Columns of pairs of rows, then of four rows, in each half of the register separately.
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
