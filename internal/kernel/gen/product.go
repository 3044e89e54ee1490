package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows returns how many rows a tile has: as many as leave, of all registers, two for a row of b and two to spread
// a's elements in, at two sums a row.
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
// registers; each takes its products in ascending order. What a and b hold in 32 bits is multiplied and added to a sum
// by multiplyAdd.
//
// The sums begin at zero, and what they are added to is read at the end, before anything is written: at the beginning
// it would lie below what the tile above has just written, often a multiple of 4096 bytes away, and processors that
// compare the lower bits of addresses would wait for those writes.
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
//
// Several columns of a go by before its pointers move on where they stand side by side in each row, as packed rows do,
// or where a's columns follow each other without gaps, as packed columns do: a core that two threads share decodes half
// as many instructions for each, which the sums and what they read leave hardly room for.
func (a *isa) addProducts(sums [][2]reg.VecVirtual, multiplyAdd func(y, x, sum reg.VecVirtual)) (next reg.Register) {
	rows := len(sums)
	p := products{isa: a, sums: sums, multiplyAdd: multiplyAdd, unroll: 8}
	if a.avx512() {
		p.unroll = 4
	}
	p.pointers, p.aRow = a.rowsOfA(rows)
	aCol := a.bytes("aCol")
	p.b, p.k, p.next = a.argument("b"), a.argument("k"), a.argument("next")

	rest, one, done := a.label("rest"), a.label("one"), a.label("done")
	columns := a.label("columns")
	a.CMPQ(aCol, operand.U8(4))
	a.JNE(operand.LabelRef(columns))
	p.columns(4, rest)
	if rows > 1 {
		a.Label(columns)
		a.CMPQ(p.aRow, operand.U8(4))
		a.JNE(operand.LabelRef(one))
		a.CMPQ(aCol, operand.U8(4*rows))
		a.JNE(operand.LabelRef(one))
		p.columns(4*rows, rest)
	}

	// what is left, or columns that are anywhere, one at a time
	a.Label(rest)
	a.ADDQ(operand.U8(p.unroll), p.k)
	a.JZ(operand.LabelRef(done))
	if rows == 1 {
		a.Label(columns)
	}
	a.Label(one)
	p.column(0, 0)
	for _, pointer := range p.pointers {
		a.ADDQ(aCol, pointer)
	}
	a.ADDQ(operand.U32(uint32(p.rowOfB())), p.b)
	a.DECQ(p.k)
	a.JNZ(operand.LabelRef(one))
	a.Label(done)
	return p.next
}

// products writes the loops over a's columns and b's rows that add their products to a tile's sums.
type products struct {
	*isa
	sums        [][2]reg.VecVirtual
	multiplyAdd func(y, x, sum reg.VecVirtual)
	unroll      int            // columns that go by before the pointers move on
	pointers    []reg.Register // to a, one for three rows each
	aRow        reg.Register
	b, k, next  reg.Register
}

// rowOfB returns the bytes of a row of b.
func (p *products) rowOfB() int { return 2 * 4 * p.lanes }

// column adds the products of a column further on than the pointers, by so many bytes in each row.
func (p *products) column(column, bytes int) {
	b0, b1 := p.vector(), p.vector()
	p.VMOVUPS(operand.Mem{Base: p.b, Disp: p.rowOfB() * column}, b0)
	p.VMOVUPS(operand.Mem{Base: p.b, Disp: p.rowOfB()*column + 4*p.lanes}, b1)
	for r, s := range p.sums {
		at := operand.Mem{Base: p.pointers[r/3], Disp: bytes}
		if r%3 > 0 {
			at.Index, at.Scale = p.aRow, uint8(r%3)
		}
		x := p.vector()
		p.VBROADCASTSS(at, x)
		p.multiplyAdd(b0, x, s[0])
		p.multiplyAdd(b1, x, s[1])
	}
}

// columns goes over columns that are so many bytes apart, as long as p.unroll are left, and on to the label rest.
func (p *products) columns(bytes int, rest string) {
	loop := p.label("loop")
	p.SUBQ(operand.U8(p.unroll), p.k)
	p.JL(operand.LabelRef(rest))
	p.Label(loop)
	for line := range p.unroll / 2 {
		p.PREFETCHT1(operand.Mem{Base: p.next, Disp: 64 * line})
	}
	p.ADDQ(operand.U32(64*p.unroll/2), p.next)
	for column := range p.unroll {
		p.column(column, bytes*column)
	}
	for _, pointer := range p.pointers {
		p.ADDQ(operand.U32(uint32(bytes*p.unroll)), pointer)
	}
	p.ADDQ(operand.U32(uint32(p.unroll*p.rowOfB())), p.b)
	p.SUBQ(operand.U8(p.unroll), p.k)
	p.JGE(operand.LabelRef(loop))
	p.JMP(operand.LabelRef(rest))
}

// rowsOfA returns pointers to a, one for three rows each, and the bytes from one row to the next.
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
