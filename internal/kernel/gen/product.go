package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows returns how many rows of a product one tile has: as many as there are registers for two registers of each
// row, one register of b's row times two, and what a's elements are spread in.
func (a *isa) tileRows() int {
	if a.avx512() {
		return 14 // 28 sums, 2 of b, 2 of a
	}
	return 6 // 12 sums, 2 of b, 2 of a
}

// product are the tiles of a matrix product, one function for each number of rows (Goto & van de Geijn 2008).
func product(a *isa) {
	for rows := 1; rows <= a.tileRows(); rows++ {
		a.tile(rows, "tile", func(y, x, sum reg.VecVirtual) { a.VFMADD231PS(y, x, sum) })
	}
	if !a.avx512() {
		return
	}
	for rows := 1; rows <= a.tileRows(); rows++ {
		a.tile(rows, "pairTile", a.addPairs)
	}
}

// tile writes the function for tiles of so many rows, two registers wide, one below the other. All sums stay in
// registers; each takes its products in ascending order. What a and b hold in 32 bits is multiplied and added to a sum by
// multiplyAdd.
//
// The sums begin at zero, and what they are added to is read at the end, before anything is written: at the beginning it
// would lie below what the tile above has just written, often a multiple of 4096 bytes away, and processors that compare
// the lower bits of addresses would wait for those writes.
func (a *isa) tile(rows int, name string, multiplyAdd func(y, x, sum reg.VecVirtual)) {
	a.function(fmt.Sprintf("%s%d", name, rows),
		"(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next, end *float32, count int)",
		fmt.Sprintf("writes from + a·b to c, count times %d rows of %d: see set.%s.", rows, 2*a.lanes, name))
	tile := a.label("tile")
	a.Label(tile)
	a.prefetch(rows)
	var sums [][2]reg.VecVirtual
	for range rows {
		sums = append(sums, [2]reg.VecVirtual{a.zero(), a.zero()})
	}
	next := a.addProducts(sums, multiplyAdd)
	a.addSums(sums)

	// on to the next tile
	a.ADDQ(a.bytes("aTile"), a.address("a"))
	end := a.argument("end")
	a.CMPQ(next, end)
	a.CMOVQHI(end, next)
	a.MOVQ(next, a.address("next"))
	a.DECQ(a.address("count"))
	a.JNZ(operand.LabelRef(tile))
	a.end()
}

// argument loads a parameter that is one word, bytes one that counts float32 values as so many bytes.
func (a *isa) argument(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }

func (a *isa) bytes(name string) reg.Register {
	r := a.argument(name)
	a.SHLQ(operand.U8(2), r)
	return r
}

// prefetch asks the cache for the tile of c.
func (a *isa) prefetch(rows int) {
	c, cRow := a.argument("c"), a.bytes("cRow")
	for r := range rows {
		a.PREFETCHT0(operand.Mem{Base: c})
		if r+1 < rows {
			a.ADDQ(cRow, c)
		}
	}
}

// addSums writes from plus the sums to c, two registers a row, and moves both on to the next tile's place.
func (a *isa) addSums(sums [][2]reg.VecVirtual) {
	from, fromRow := a.argument("from"), a.bytes("fromRow")
	for _, s := range sums {
		a.VADDPS(operand.Mem{Base: from}, s[0], s[0])
		a.VADDPS(operand.Mem{Base: from, Disp: 4 * a.lanes}, s[1], s[1])
		a.ADDQ(fromRow, from)
	}
	a.MOVQ(from, a.address("from"))
	c, cRow := a.argument("c"), a.bytes("cRow")
	for _, s := range sums {
		a.VMOVUPS(s[0], operand.Mem{Base: c})
		a.VMOVUPS(s[1], operand.Mem{Base: c, Disp: 4 * a.lanes})
		a.ADDQ(cRow, c)
	}
	a.MOVQ(c, a.address("c"))
}

// addProducts adds a·b to the sums, k ascending, and returns how far it has come in asking the cache for what follows.
func (a *isa) addProducts(sums [][2]reg.VecVirtual, multiplyAdd func(y, x, sum reg.VecVirtual)) (next reg.Register) {
	element, columnDone := a.rowsOfA(len(sums))
	b, k, next := a.argument("b"), a.argument("k"), a.argument("next")
	width := 4 * a.lanes // bytes
	step := func(column int) {
		b0, b1 := a.vector(), a.vector()
		a.VMOVUPS(operand.Mem{Base: b, Disp: 2 * width * column}, b0)
		a.VMOVUPS(operand.Mem{Base: b, Disp: 2*width*column + width}, b1)
		for r, s := range sums {
			x := a.vector()
			a.VBROADCASTSS(element(r), x)
			multiplyAdd(b0, x, s[0])
			multiplyAdd(b1, x, s[1])
		}
		columnDone()
	}
	const unroll = 4
	loop, rest, one, done := a.label("loop"), a.label("rest"), a.label("one"), a.label("done")
	a.SUBQ(operand.U8(unroll), k)
	a.JL(operand.LabelRef(rest))
	a.Label(loop)
	a.PREFETCHT1(operand.Mem{Base: next})
	a.PREFETCHT1(operand.Mem{Base: next, Disp: 64})
	a.SUBQ(operand.I8(-128), next)
	for column := range unroll {
		step(column)
	}
	a.ADDQ(operand.U32(unroll*2*width), b)
	a.SUBQ(operand.U8(unroll), k)
	a.JGE(operand.LabelRef(loop))
	a.Label(rest)
	a.ADDQ(operand.U8(unroll), k)
	a.JZ(operand.LabelRef(done))
	a.Label(one)
	step(0)
	a.ADDQ(operand.U32(2*width), b)
	a.DECQ(k)
	a.JNZ(operand.LabelRef(one))
	a.Label(done)
	return next
}

// rowsOfA returns where the elements of a's column are, row by row, with three rows to a pointer, and what moves on to the
// next column.
func (a *isa) rowsOfA(rows int) (element func(r int) operand.Mem, columnDone func()) {
	aRow, aCol := a.bytes("aRow"), a.bytes("aCol")
	pointers := []reg.Register{a.argument("a")}
	for r := 3; r < rows; r += 3 {
		p := a.GP64()
		a.LEAQ(operand.Mem{Base: pointers[len(pointers)-1], Index: aRow, Scale: 2}, p)
		a.ADDQ(aRow, p)
		pointers = append(pointers, p)
	}
	element = func(r int) operand.Mem {
		m := operand.Mem{Base: pointers[r/3]}
		if r%3 > 0 {
			m.Index, m.Scale = aRow, uint8(r%3)
		}
		return m
	}
	return element, func() {
		for _, p := range pointers {
			a.ADDQ(aCol, p)
		}
	}
}
