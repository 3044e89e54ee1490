package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows returns the number of rows of a tile. Each has two registers of sums; a row of b takes two more, elements of
// a at least two. AVX-512 has registers for 14 rows: where another thread uses the core too, 12 are faster, and 12 rows
// divide a unit (unitRows) and a block of queries (queryBlock).
func (a *isa) tileRows() int {
	if a.avx512() {
		return 12 // 24 sums, 2 of b, 6 of a
	}
	return 6 // 12 sums, 2 of b, 2 of a
}

// product are the tiles of a matrix product, one function for each number of rows (Goto & van de Geijn 2008).
func product(a *isa) {
	a.tiles("tile", arithmetic{func(y, x, sum reg.VecVirtual) { a.VFMADD231PS(y, x, sum) }, a.VADDPS})
	if a.avx512() {
		a.tiles("pairTile", arithmetic{a.addPairs, a.VADDPS})
		a.tiles("byteTile", arithmetic{func(y, x, sum reg.VecVirtual) { a.VPDPBUSD(y, x, sum) }, a.VPADDD})
	}
	a.tiles("wordTile", arithmetic{a.addWords, a.VPADDD})
}

// arithmetic is how tiles sum: multiplyAdd multiplies 32 bits of a and b and adds the result to a sum, add adds sums.
type arithmetic struct {
	multiplyAdd func(y, x, sum reg.VecVirtual)
	add         func(...operand.Op)
}

func (a *isa) tiles(name string, of arithmetic) {
	for rows := 1; rows <= a.tileRows(); rows++ {
		a.tile(rows, name, of)
	}
}

// tile writes the function for tiles of the given rows, two registers wide, one below the other. All sums stay in
// registers; each adds its products in ascending order.
//
// The sums start at zero, and c's previous values are added at the end, before anything is written: at the start, they
// would be read just after the tile above was written, often at a distance of a multiple of 4096 bytes, and processors
// that compare the lower bits of addresses would wait for those writes (4K aliasing).
func (a *isa) tile(rows int, name string, of arithmetic) {
	a.function(fmt.Sprintf("%s%d", name, rows),
		"(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next, end "+
			"*float32, count int)",
		fmt.Sprintf("writes from + a·b to c, count times %d rows of %d: see tileFunc.", rows, 2*a.lanes))
	tile := a.label("tile")
	a.Label(tile)
	var sums [][2]reg.VecVirtual
	for range rows {
		sums = append(sums, [2]reg.VecVirtual{a.zero(), a.zero()})
	}
	next := a.addProducts(sums, of.multiplyAdd)
	a.addSums(sums, of.add)

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

// addSums writes from plus the sums to c, two registers a row, and advances both to the next tile.
func (a *isa) addSums(sums [][2]reg.VecVirtual, add func(...operand.Op)) {
	from, fromRow := a.argument("from"), a.bytes("fromRow")
	for _, s := range sums {
		add(operand.Mem{Base: from}, s[0], s[0])
		add(operand.Mem{Base: from, Disp: 4 * a.lanes}, s[1], s[1])
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
	p := products{isa: a, sums: sums, multiplyAdd: multiplyAdd, unroll: 8}
	if a.avx512() {
		p.unroll = 4
	}
	p.pointers, p.aRow = a.rowsOfA(rows)
	aCol := a.bytes("aCol")
	p.b, p.k, p.next = a.argument("b"), a.argument("k"), a.argument("next")
	p.rowsOfC()

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
	unroll      int            // columns between two steps of the pointers
	pointers    []reg.Register // to a, one for three rows each
	aRow        reg.Register
	b, k, next  reg.Register
	c, cRow     reg.Register // the row of c that is prefetched next
	lastOfC     reg.Register // the tile's last row of c
}

// rowsOfC sets the rows of c that are prefetched.
func (p *products) rowsOfC() {
	p.c, p.cRow, p.lastOfC = p.argument("c"), p.bytes("cRow"), p.GP64()
	p.IMUL3Q(operand.U8(len(p.sums)-1), p.cRow, p.lastOfC)
	p.ADDQ(p.c, p.lastOfC)
}

// prefetch prefetches lines of the next panel, as many as the loop's columns are of this one, and one row of the tile
// of c, after the last one that one again: a row that is not in the cache when it is written delays the next tile. All
// rows at once would have the loads of a and b wait for lines from memory. Where k is small, rows are left.
func (p *products) prefetch() {
	for line := range p.unroll / 2 {
		p.PREFETCHT1(operand.Mem{Base: p.next, Disp: 64 * line})
	}
	p.ADDQ(operand.U32(64*p.unroll/2), p.next)
	p.PREFETCHT0(operand.Mem{Base: p.c})
	if p.avx512() {
		p.PREFETCHT0(operand.Mem{Base: p.c, Disp: 4 * p.lanes})
	}
	p.ADDQ(p.cRow, p.c)
	p.CMPQ(p.c, p.lastOfC)
	p.CMOVQHI(p.lastOfC, p.c)
}

// rowOfB returns the bytes of a row of b.
func (p *products) rowOfB() int { return 2 * 4 * p.lanes }

// column adds the products of the column at an offset in bytes from the pointers.
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

// columns loops over columns with a stride in bytes while p.unroll are left, and jumps to the label rest.
func (p *products) columns(bytes int, rest string) {
	loop := p.label("loop")
	p.SUBQ(operand.U8(p.unroll), p.k)
	p.JL(operand.LabelRef(rest))
	p.Label(loop)
	p.prefetch()
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
