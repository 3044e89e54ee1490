package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows returns the number of rows of a tile: the most with two registers of sums a row that leave two registers for
// a row of b and two for elements of a.
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

// tile writes the function for tiles of the given rows, two registers wide, one below the other. All sums stay in
// registers; each adds its products in ascending order. multiplyAdd multiplies 32 bits of a and b and adds the result
// to a sum.
//
// The sums start at zero, and c's previous values are added at the end, before anything is written: at the start, they
// would be read just after the tile above was written, often at a distance of a multiple of 4096 bytes, and processors
// that compare the lower bits of addresses would wait for those writes (4K aliasing).
func (a *isa) tile(rows int, name string, multiplyAdd func(y, x, sum reg.VecVirtual)) {
	a.function(fmt.Sprintf("%s%d", name, rows),
		"(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next, end "+
			"*float32, count int)",
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

	// advance to the next tile
	a.ADDQ(a.bytes("aTile"), a.address("a"))
	end := a.argument("end")
	a.CMPQ(next, end)
	a.CMOVQHI(end, next)
	a.MOVQ(next, a.address("next"))
	a.DECQ(a.address("count"))
	a.JNZ(operand.LabelRef(tile))
	a.end()
}

// argument loads a parameter of one word; bytes loads one that counts float32 values, in bytes.
func (a *isa) argument(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }

func (a *isa) bytes(name string) reg.Register {
	r := a.argument(name)
	a.SHLQ(operand.U8(2), r)
	return r
}

// prefetch prefetches the tile of c.
func (a *isa) prefetch(rows int) {
	c, cRow := a.argument("c"), a.bytes("cRow")
	for r := range rows {
		a.PREFETCHT0(operand.Mem{Base: c})
		if r+1 < rows {
			a.ADDQ(cRow, c)
		}
	}
}

// addSums writes from plus the sums to c, two registers a row, and advances both to the next tile.
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

// addProducts adds a·b to the sums, k ascending, and returns the address up to which the next panel was prefetched.
//
// The loop is unrolled over several columns of a where they are adjacent in each row, as in packed rows, or follow each
// other without gaps, as packed columns do, so that pointers advance once for them: a core that is shared by two
// threads decodes half as many instructions for each, which is hardly enough for the multiply-adds and loads.
func (a *isa) addProducts(sums [][2]reg.VecVirtual, multiplyAdd func(y, x, sum reg.VecVirtual)) (next reg.Register) {
	rows := len(sums)
	pointers, aRow := a.rowsOfA(rows)
	aCol := a.bytes("aCol")
	b, k, next := a.argument("b"), a.argument("k"), a.argument("next")
	width := 4 * a.lanes // bytes
	// step adds the products of the column at an offset in bytes from the pointers.
	step := func(column, bytes int) {
		b0, b1 := a.vector(), a.vector()
		a.VMOVUPS(operand.Mem{Base: b, Disp: 2 * width * column}, b0)
		a.VMOVUPS(operand.Mem{Base: b, Disp: 2*width*column + width}, b1)
		for r, s := range sums {
			at := operand.Mem{Base: pointers[r/3], Disp: bytes}
			if r%3 > 0 {
				at.Index, at.Scale = aRow, uint8(r%3)
			}
			x := a.vector()
			a.VBROADCASTSS(at, x)
			multiplyAdd(b0, x, s[0])
			multiplyAdd(b1, x, s[1])
		}
	}
	rest, one, done := a.label("rest"), a.label("one"), a.label("done")
	unroll := 8
	if a.avx512() {
		unroll = 4
	}
	// loop is over columns with a stride in bytes.
	loop := func(bytes int) {
		loop := a.label("loop")
		a.SUBQ(operand.U8(unroll), k)
		a.JL(operand.LabelRef(rest))
		a.Label(loop)
		for line := range unroll / 2 {
			a.PREFETCHT1(operand.Mem{Base: next, Disp: 64 * line})
		}
		a.ADDQ(operand.U32(64*unroll/2), next)
		for column := range unroll {
			step(column, bytes*column)
		}
		for _, p := range pointers {
			a.ADDQ(operand.U32(uint32(bytes*unroll)), p)
		}
		a.ADDQ(operand.U32(uint32(unroll*2*width)), b)
		a.SUBQ(operand.U8(unroll), k)
		a.JGE(operand.LabelRef(loop))
		a.JMP(operand.LabelRef(rest))
	}
	columns := a.label("columns")
	a.CMPQ(aCol, operand.U8(4))
	a.JNE(operand.LabelRef(columns))
	loop(4)
	if rows > 1 {
		a.Label(columns)
		a.CMPQ(aRow, operand.U8(4))
		a.JNE(operand.LabelRef(one))
		a.CMPQ(aCol, operand.U8(4*rows))
		a.JNE(operand.LabelRef(one))
		loop(4 * rows)
	}

	a.Label(rest)
	a.ADDQ(operand.U8(unroll), k)
	a.JZ(operand.LabelRef(done))
	if rows == 1 {
		a.Label(columns)
	}
	a.Label(one)
	step(0, 0)
	for _, p := range pointers {
		a.ADDQ(aCol, p)
	}
	a.ADDQ(operand.U32(uint32(2*width)), b)
	a.DECQ(k)
	a.JNZ(operand.LabelRef(one))
	a.Label(done)
	return next
}

// rowsOfA returns pointers to a, one for every three rows, and the row stride in bytes.
func (a *isa) rowsOfA(rows int) (pointers []reg.Register, aRow reg.Register) {
	aRow = a.bytes("aRow")
	pointers = []reg.Register{a.argument("a")}
	for r := 3; r < rows; r += 3 {
		p := a.GP64()
		a.LEAQ(operand.Mem{Base: pointers[len(pointers)-1], Index: aRow, Scale: 2}, p)
		a.ADDQ(aRow, p)
		pointers = append(pointers, p)
	}
	return pointers, aRow
}
