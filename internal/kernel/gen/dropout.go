package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dropout are the loops that apply a mask: a block of four random words is 128 bits of a register, so words are in the
// order of their elements.
func dropout(a *isa) {
	a.function("drop", "(out, x []float32, key, counter uint64, bound uint32, scale float32, first int)",
		"writes to out x with a mask applied; the first element of x has the index first.")
	drops(a, nil)
	a.function("addDropped", "(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int)",
		"writes to out the sum of to and x with a mask applied; the first element of x has the index first.")
	to := a.slice("to")
	drops(a, to)
}

// drops is the body of both; to is nil for drop, which has no addend.
func drops(a *isa, to reg.Register) {
	out, x, n := a.slice("out"), a.slice("x"), a.length("x")
	first := a.Load(a.Param("first"), a.GP64())
	bases := []reg.Register{out, x}
	if to != nil {
		bases = append(bases, to)
	}
	bound, scale := a.spread("bound"), a.spread("scale")
	words := a.generator()

	// A register has elements from a multiple of its lanes on: skip is the number of them before x.
	skip, block := a.GP64(), a.GP64()
	a.MOVQ(first, skip)
	a.ANDQ(operand.U8(a.lanes-1), skip)
	a.MOVQ(first, block)
	a.SUBQ(skip, block)
	a.SHRQ(operand.U8(2), block)
	words.startAt(block)

	body := func(at []place) {
		words := words.next(len(at))
		for v, at := range at {
			x := a.load(at(x))
			a.VMULPS(scale, x, x)
			a.keepAtLeast(words[v], bound, x)
			if to != nil {
				a.VADDPS(x, a.load(at(to)), x)
			}
			a.store(x, at(out))
		}
	}

	whole := a.label("whole")
	a.TESTQ(skip, skip)
	a.JZ(operand.LabelRef(whole))
	a.firstRegister(skip, n, bases, body)
	done := a.label("dropped")
	a.JLE(operand.LabelRef(done))
	a.Label(whole)
	a.together(n, 4, body) // interleaved, since the generator has a long latency
	a.Label(done)
	a.end()
}

// firstRegister calls body for the first register, without the lanes before the bases and those after their n elements.
// The bases move on to the second register, and n to what is left from there on, which the flags compare with 0.
func (a *isa) firstRegister(skip, n reg.Register, bases []reg.Register, body func([]place)) {
	for _, base := range bases {
		back := a.GP64()
		a.MOVQ(skip, back)
		a.SHLQ(operand.U8(2), back)
		a.SUBQ(back, base)
	}
	a.ADDQ(skip, n)

	// the lanes from skip up to n or the register's end
	rest := a.label("rest")
	end := a.GP64()
	a.MOVQ(n, end)
	a.CMPQ(end, operand.U8(a.lanes))
	a.JLE(operand.LabelRef(rest))
	a.MOVQ(operand.U32(a.lanes), end)
	a.Label(rest)
	a.setMaskBetween(skip, end)
	body([]place{func(base reg.Register) operand.Mem { return operand.Mem{Base: base} }})
	a.mask = nil

	for _, base := range bases {
		a.ADDQ(operand.U8(4*a.lanes), base)
	}
	a.SUBQ(operand.U8(a.lanes), n)
}

// generator writes the generator of a mask's words, Philox4x32-10 (Salmon et al. 2011). A register holds a word for
// each of its lanes.
type generator struct {
	*isa
	keys             []operand.Op // of the rounds
	factor           reg.VecVirtual
	counter, advance reg.VecVirtual // of the next register, and what is added for the one after it
}

// generator loads what does not depend on the words' place.
func (a *isa) generator() *generator {
	g := &generator{isa: a, keys: a.roundKeys(), factor: a.vector()}
	a.load64(a.pairs("factors", 0xd2511f53, 0xcd9e8d57), g.factor)
	return g
}

// startAt makes the next register's words those from a block on. Words 0 and 1 of a counter are the block's number,
// words 2 and 3 are the parameter counter, the mask's number.
func (g *generator) startAt(block reg.Register) {
	g.counter = g.alternate(block, g.Load(g.Param("counter"), g.GP64()))
	places := g.numbers("places", func(i int) uint64 { return uint64((1 - i%2) * (i / 2)) })
	g.VPADDQ(places, g.counter, g.counter)
	g.advance = g.vector()
	g.load64(g.pairs("advance", uint64(g.lanes/4), 0), g.advance)
}

// next returns the words of the next n registers.
func (g *generator) next(n int) []reg.VecVirtual {
	words, mixed := make([]reg.VecVirtual, n), make([]reg.VecVirtual, n)
	for v := range n {
		words[v], mixed[v] = g.vector(), g.vector()
		g.copy(g.counter, words[v])
		g.VPADDQ(g.advance, g.counter, g.counter)
	}
	for _, key := range g.keys {
		// Words 0 and 2 times their factors are two products of two words each. The next words are, in this order,
		// high(2)⊕1⊕key, low(2), high(0)⊕3⊕key, low(0): the products in reverse order, with the other words xored.
		for v := range n {
			g.VPMULUDQ(g.factor, words[v], mixed[v])
			g.VPSRLQ(operand.U8(32), words[v], words[v])
		}
		for v := range n {
			g.VPSHUFD(operand.U8(0b00_01_10_11), mixed[v], mixed[v])
			g.xor3(key, mixed[v], words[v])
		}
	}
	return words
}

// setMaskBetween makes a.mask one of the lanes from lo up to hi, 0 ≤ lo ≤ hi ≤ all.
func (a *isa) setMaskBetween(lo, hi reg.Register) {
	a.setMask(lo)
	before := a.mask
	a.setMask(hi)
	if a.avx512() {
		a.KANDNW(a.mask, before, a.mask)
	} else {
		a.VANDNPS(a.mask, before, a.mask)
	}
}

// roundKeys returns the keys of the generator's ten rounds, repeated in each 64 bits: in registers, or on the stack
// where there are too few registers.
func (a *isa) roundKeys() []operand.Op {
	low, high := a.GP64(), a.Load(a.Param("key"), a.GP64())
	a.MOVL(high.(reg.GP).As32(), low.As32())
	a.SHRQ(operand.U8(32), high)
	key, rise := a.alternate(low, high), a.vector()
	a.load64(a.pairs("rises", 0x9e3779b9, 0xbb67ae85), rise)

	const rounds = 10
	keys := make([]operand.Op, rounds)
	var stack operand.Mem
	if !a.avx512() {
		stack = a.AllocLocal(rounds * 4 * a.lanes)
	}
	for r := range keys {
		if a.avx512() {
			held := a.vector()
			a.copy(key, held)
			keys[r] = held
		} else {
			at := stack.Offset(r * 4 * a.lanes)
			a.VMOVUPS(key, at)
			keys[r] = at
		}
		a.VPADDD(rise, key, key)
	}
	return keys
}

// alternate returns a register of the 64-bit values even and odd, alternating.
func (a *isa) alternate(even, odd reg.Register) reg.VecVirtual {
	v, other := a.vector(), a.vector()
	a.VMOVQ(even, v.AsX())
	a.VMOVQ(odd, other.AsX())
	a.VPUNPCKLQDQ(other.AsX(), v.AsX(), v.AsX())
	if a.avx512() {
		a.VSHUFI32X4(operand.U8(0), v, v, v)
	} else {
		a.VINSERTI128(operand.U8(1), v.AsX(), v, v)
	}
	return v
}

// pairs returns a register's worth of the 64-bit constants even and odd, alternating.
func (a *isa) pairs(name string, even, odd uint64) operand.Mem {
	return a.numbers(name, func(i int) uint64 { return [2]uint64{even, odd}[i%2] })
}

// numbers returns a register's worth of 64-bit constants.
func (a *isa) numbers(name string, of func(i int) uint64) operand.Mem {
	m := a.StaticGlobal(a.label(name))
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range a.lanes / 2 {
		a.AddDatum(8*i, operand.U64(of(i)))
	}
	return m
}

// load64 reads a register of 64-bit numbers.
func (a *isa) load64(m operand.Mem, to reg.VecVirtual) {
	if a.avx512() {
		a.VMOVDQU64(m, to)
	} else {
		a.VMOVDQU(m, to)
	}
}

// copy copies all of a register.
func (a *isa) copy(from, to reg.VecVirtual) {
	if a.avx512() {
		a.VMOVDQA64(from, to)
	} else {
		a.VMOVDQA(from, to)
	}
}

// xor3 makes z x⊕y⊕z.
func (a *isa) xor3(x, y operand.Op, z reg.VecVirtual) {
	if a.avx512() {
		a.VPTERNLOGD(operand.U8(0x96), x, y, z)
	} else {
		a.VPXOR(x, z, z)
		a.VPXOR(y, z, z)
	}
}

// keepAtLeast sets the lanes of v to 0 whose word, as an unsigned number, is less than bound.
func (a *isa) keepAtLeast(words, bound, v reg.VecVirtual) {
	if a.avx512() {
		k := a.K()
		a.VPCMPUD(operand.U8(5), bound, words, k) // not less
		a.VMOVAPS_Z(v, k, v)
		return
	}
	top := a.vector()
	a.VPMAXUD(bound, words, top)
	a.VPCMPEQD(top, words, top)
	a.VANDPS(top, v, v)
}
