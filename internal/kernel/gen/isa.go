package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set, for which loops are written.
type isa struct {
	*build.Context
	suffix    string // of the functions' names
	lanes     int    // float32 values in a register
	registers int

	mask   operand.Op             // of the elements in a loop's last register, where it is not full; else nil
	masks  *operand.Mem           // AVX2: lanes of ones, then lanes of zeros
	stored map[uint32]operand.Mem // constants in memory, by their bits
	count  int                    // of labels and constants
}

func newAVX2(c *build.Context) *isa { return &isa{Context: c, suffix: "AVX2", lanes: 8, registers: 16} }
func newAVX512(c *build.Context) *isa {
	return &isa{Context: c, suffix: "AVX512", lanes: 16, registers: 32}
}

func (a *isa) avx512() bool { return a.lanes == 16 }

// function starts the function name with a signature such as "(out, x []float32)". doc is a sentence without its first
// word, the function's name.
func (a *isa) function(name, signature, doc string) {
	a.Function(name + a.suffix)
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr("func" + signature)
	a.Doc(name + a.suffix + " " + doc)
	a.Pragma("noescape")
}

// end ends it.
func (a *isa) end() {
	a.VZEROUPPER()
	a.RET()
}

// vector returns a register of the full width.
func (a *isa) vector() reg.VecVirtual {
	if a.avx512() {
		return a.ZMM()
	}
	return a.YMM()
}

// zero returns a register of zeros.
func (a *isa) zero() reg.VecVirtual {
	v := a.vector()
	a.clear(v)
	return v
}

func (a *isa) clear(v reg.VecVirtual) {
	if a.avx512() {
		a.VPXORD(v, v, v)
	} else {
		a.VXORPS(v, v, v)
	}
}

// constant returns a register with v in every lane.
func (a *isa) constant(v float32) reg.VecVirtual {
	r := a.vector()
	a.VBROADCASTSS(a.ConstData(a.label("constant"), operand.F32(v)), r)
	return r
}

// spread returns a register with the parameter called name in every lane.
func (a *isa) spread(name string) reg.VecVirtual {
	m, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := a.vector()
	a.VBROADCASTSS(m.Addr, r)
	return r
}

// slice loads a slice parameter's address.
func (a *isa) slice(name string) reg.Register {
	return a.Load(a.Param(name).Base(), a.GP64())
}

// length loads a slice parameter's length.
func (a *isa) length(name string) reg.Register {
	return a.Load(a.Param(name).Len(), a.GP64())
}

// address returns the address of a parameter of one word.
func (a *isa) address(name string) operand.Mem {
	m, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return m.Addr
}

// label returns a name that is used once.
func (a *isa) label(name string) string {
	a.count++
	return fmt.Sprintf("%s_%s_%d", name, a.suffix, a.count)
}

// over writes a loop over n elements, a register at a time: body gets the index of the register's first element. In
// the last register, where it is not full, a.load reads zeros beyond n and a.store does not write there.
func (a *isa) over(n reg.Register, body func(i reg.Register)) {
	loop, rest, done := a.label("loop"), a.label("rest"), a.label("done")
	i, left := a.GP64(), a.GP64()
	a.XORQ(i, i)
	a.MOVQ(n, left)
	a.SUBQ(operand.U8(a.lanes), left)
	a.JL(operand.LabelRef(rest))

	a.Label(loop)
	body(i)
	a.ADDQ(operand.U8(a.lanes), i)
	a.SUBQ(operand.U8(a.lanes), left)
	a.JGE(operand.LabelRef(loop))

	a.Label(rest)
	a.ADDQ(operand.U8(a.lanes), left)
	a.JZ(operand.LabelRef(done))
	a.setMask(left)
	body(i)
	a.mask = nil
	a.Label(done)
}

// setMask sets a.mask to the first n lanes, n from 0 to all of them.
func (a *isa) setMask(n reg.Register) {
	if a.avx512() {
		bits, k, count := a.GP64(), a.K(), reg.RCX
		a.MOVQ(n, count)
		a.MOVQ(operand.U32(1), bits)
		a.SHLQ(reg.CL, bits)
		a.DECQ(bits)
		a.KMOVW(bits.As32(), k)
		a.mask = k
		return
	}
	if a.masks == nil {
		m := a.StaticGlobal("masks")
		a.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 2 * a.lanes {
			v := operand.U32(0)
			if i < a.lanes {
				v = 0xffffffff
			}
			a.AddDatum(4*i, v)
		}
		a.masks = &m
	}
	table, at, mask := a.GP64(), a.GP64(), a.vector()
	a.LEAQ(*a.masks, table)
	a.MOVQ(operand.U32(uint32(a.lanes)), at)
	a.SUBQ(n, at)
	a.VMOVUPS(element(table, at), mask)
	a.mask = mask
}

// element is element i of the float32 values at base.
func element(base, i reg.Register) operand.Mem {
	return operand.Mem{Base: base, Index: i, Scale: 4}
}

// load reads a register.
func (a *isa) load(from operand.Mem) reg.VecVirtual {
	v := a.vector()
	switch {
	case a.mask == nil:
		a.VMOVUPS(from, v)
	case a.avx512():
		a.VMOVUPS_Z(from, a.mask, v)
	default:
		a.VMASKMOVPS(from, a.mask, v)
	}
	return v
}

// store writes a register.
func (a *isa) store(v reg.Register, to operand.Mem) {
	switch {
	case a.mask == nil:
		a.VMOVUPS(v, to)
	case a.avx512():
		a.VMOVUPS(v, a.mask, to)
	default:
		a.VMASKMOVPS(v, a.mask, to)
	}
}
