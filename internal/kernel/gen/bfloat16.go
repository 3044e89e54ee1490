package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bfloat16 are the loops that round float32 values to the pairs of bfloat16 that pairTile multiplies.
func bfloat16(a *isa) {
	if a.avx512() {
		a.pairRow()
		a.pairRows()
	}
}

// addPairs adds to sum the products of the pairs of x and y, the upper ones first.
func (a *isa) addPairs(y, x, sum reg.VecVirtual) {
	a.encoded("VDPBF16PS", []operand.Op{y, x, sum}, sum)
}

// toBFloat16 returns 32 bfloat16: those of low, then those of high.
func (a *isa) toBFloat16(low, high reg.VecVirtual) reg.VecVirtual {
	v := a.vector()
	a.encoded("VCVTNE2PS2BF16", []operand.Op{low, high}, v)
	return v
}

// firstOf32 returns the masks of two registers for the first n of their 32 lanes, n from 0 to 32. upper is the number
// of lanes in the second one.
func (a *isa) firstOf32(n reg.Register) (low, high, upper reg.Register) {
	bits, count := a.GP64(), reg.RCX
	a.MOVQ(n, count)
	a.MOVQ(operand.U32(1), bits)
	a.SHLQ(reg.CL, bits)
	a.DECQ(bits)
	low, high = a.K(), a.K()
	a.KMOVW(bits.As32(), low)
	a.SHRQ(operand.U8(16), bits)
	a.KMOVW(bits.As32(), high)
	return low, high, bits
}

// pairRow makes pairs of adjacent values: 32 values become 16 pairs, in the same order in memory.
func (a *isa) pairRow() {
	a.function("pairRow", "(out, x *float32, n int)",
		"writes n pairs of bfloat16 to out: of the first two of the 2n values of x, of the next two and so on.")
	out, x, n := a.Load(a.Param("out"), a.GP64()), a.Load(a.Param("x"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	loop, rest, done := a.label("loop"), a.label("rest"), a.label("done")
	a.SUBQ(operand.U8(16), n)
	a.JL(operand.LabelRef(rest))

	a.Label(loop)
	low, high := a.vector(), a.vector()
	a.VMOVUPS(operand.Mem{Base: x}, low)
	a.VMOVUPS(operand.Mem{Base: x, Disp: 64}, high)
	a.VMOVUPS(a.toBFloat16(low, high), operand.Mem{Base: out})
	a.ADDQ(operand.U32(128), x)
	a.ADDQ(operand.U8(64), out)
	a.SUBQ(operand.U8(16), n)
	a.JGE(operand.LabelRef(loop))

	a.Label(rest)
	a.ADDQ(operand.U8(16), n)
	a.JZ(operand.LabelRef(done))
	a.setMask(n) // of the pairs
	a.SHLQ(operand.U8(1), n)
	first, second, _ := a.firstOf32(n)
	low, high = a.vector(), a.vector()
	a.VMOVUPS_Z(operand.Mem{Base: x}, first, low)
	a.VMOVUPS_Z(operand.Mem{Base: x, Disp: 64}, second, high)
	a.store(a.toBFloat16(low, high), operand.Mem{Base: out})
	a.mask = nil
	a.Label(done)
	a.end()
}

// pairRows makes pairs of values in two rows, one above the other.
func (a *isa) pairRows() {
	a.function("pairRows", "(out, x *float32, outRow, xRow, rows, cols int)",
		"writes rows of cols pairs of bfloat16, at most 32, with row stride outRow: of the first two rows of x, with "+
			"row stride xRow, of the next two and so on.")
	out, x := a.Load(a.Param("out"), a.GP64()), a.Load(a.Param("x"), a.GP64())
	outRow, xRow := a.Load(a.Param("outRow"), a.GP64()), a.Load(a.Param("xRow"), a.GP64())
	rows, cols := a.Load(a.Param("rows"), a.GP64()), a.Load(a.Param("cols"), a.GP64())
	low, high, upper := a.firstOf32(cols)
	order := a.interleaved()
	a.SHLQ(operand.U8(2), outRow)
	a.SHLQ(operand.U8(2), xRow)
	loop, next := a.label("loop"), a.label("next")
	pair := func(mask reg.Register, disp int) {
		even, odd, mixed := a.vector(), a.vector(), a.vector()
		a.VMOVUPS_Z(operand.Mem{Base: x, Disp: disp}, mask, even)
		a.VMOVUPS_Z(operand.Mem{Base: x, Index: xRow, Scale: 1, Disp: disp}, mask, odd)
		a.VPERMW(a.toBFloat16(even, odd), order, mixed)
		a.VMOVUPS(mixed, mask, operand.Mem{Base: out, Disp: disp})
	}

	a.Label(loop)
	pair(low, 0)
	a.TESTQ(upper, upper)
	a.JZ(operand.LabelRef(next))
	pair(high, 64)
	a.Label(next)
	a.LEAQ(operand.Mem{Base: x, Index: xRow, Scale: 2}, x)
	a.ADDQ(outRow, out)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef(loop))
	a.end()
}

// interleaved returns the permutation of 32 words to the first, the 17th, the second, the 18th and so on.
func (a *isa) interleaved() reg.VecVirtual {
	words := a.StaticGlobal("interleaved")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		a.AddDatum(4*i, operand.U32(uint32(16+i)<<16|uint32(i)))
	}
	v := a.vector()
	a.VMOVUPS(words, v)
	return v
}
