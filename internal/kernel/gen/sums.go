package main

import (
	"go/types"

	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// place is the offset of a register after a base address.
type place func(base reg.Register) operand.Mem

// unrolled writes a loop over n elements, times registers in a round, the remaining ones one at a time, the last one
// masked as in over. body gets a register's place and its number k in the round, so that independent sums have one
// register each. The sum to which an element is added is a function of n and its index.
func (a *isa) unrolled(n reg.Register, times int, body func(at place, k int)) {
	a.together(n, times, func(at []place) {
		for k, at := range at {
			body(at, k)
		}
	})
}

// together is unrolled for a body that computes all registers of a round at once.
func (a *isa) together(n reg.Register, times int, body func(at []place)) {
	round, single, loop, rest, done := a.label("round"), a.label("single"), a.label("loop"), a.label("rest"),
		a.label("done")
	i, left := a.GP64(), a.GP64()
	at := make([]place, times)
	for k := range at {
		at[k] = func(base reg.Register) operand.Mem {
			return operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * a.lanes * k}
		}
	}
	a.XORQ(i, i)
	a.MOVQ(n, left)
	a.SUBQ(operand.U32(times*a.lanes), left)
	a.JL(operand.LabelRef(single))

	a.Label(round)
	body(at)
	a.ADDQ(operand.U32(times*a.lanes), i)
	a.SUBQ(operand.U32(times*a.lanes), left)
	a.JGE(operand.LabelRef(round))

	a.Label(single)
	a.ADDQ(operand.U32((times-1)*a.lanes), left)
	a.JL(operand.LabelRef(rest))
	a.Label(loop)
	body(at[:1])
	a.ADDQ(operand.U8(a.lanes), i)
	a.SUBQ(operand.U8(a.lanes), left)
	a.JGE(operand.LabelRef(loop))

	a.Label(rest)
	a.ADDQ(operand.U8(a.lanes), left)
	a.JZ(operand.LabelRef(done))
	a.setMask(left)
	body(at[:1])
	a.mask = nil
	a.Label(done)
}

// zeros returns n registers of zeros.
func (a *isa) zeros(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = a.zero()
	}
	return v
}

// sumOf returns in its lowest lane the sum of the float32 lanes of all v, which it overwrites: registers pairwise, then
// halves of a register.
func (a *isa) sumOf(v []reg.VecVirtual) reg.VecVirtual {
	for len(v) > 1 {
		half := len(v) / 2
		for i := range half {
			a.VADDPS(v[i+half], v[i], v[i])
		}
		v = v[:half]
	}
	x, upper := v[0].AsX(), a.XMM()
	a.halve(v[0], a.VADDPS)
	a.VMOVHLPS(x, x, upper)
	a.VADDPS(upper, x, x)
	a.VMOVSHDUP(x, upper)
	a.VADDSS(upper, x, x)
	return v[0]
}

// sumOf64 is sumOf for float64 lanes.
func (a *isa) sumOf64(v []reg.VecVirtual) reg.VecVirtual {
	for len(v) > 1 {
		half := len(v) / 2
		for i := range half {
			a.VADDPD(v[i+half], v[i], v[i])
		}
		v = v[:half]
	}
	x, upper := v[0].AsX(), a.XMM()
	a.halve(v[0], a.VADDPD)
	a.VUNPCKHPD(x, x, upper)
	a.VADDSD(upper, x, x)
	return v[0]
}

// halve adds the upper halves of v to the lower ones until the lowest 128 bits have the sum.
func (a *isa) halve(v reg.VecVirtual, add func(...operand.Op)) {
	if a.avx512() {
		upper := a.YMM()
		a.VEXTRACTF64X4(operand.U8(1), v, upper)
		add(upper, v.AsY(), v.AsY())
	}
	upper := a.XMM()
	a.VEXTRACTF128(operand.U8(1), v.AsY(), upper)
	add(upper, v.AsX(), v.AsX())
}

// spreadLowest copies the lowest lane of v to all.
func (a *isa) spreadLowest(v reg.VecVirtual) { a.VBROADCASTSS(v.AsX(), v) }

// only sets the lanes of v beyond a loop's end to 0.
func (a *isa) only(v reg.VecVirtual) {
	switch {
	case a.mask == nil:
	case a.avx512():
		a.VMOVAPS_Z(v, a.mask, v)
	default:
		a.VANDPS(a.mask, v, v)
	}
}

// storeResult stores the lowest lane of v as a result. a.Store would choose SSE moves, which are slow on some
// processors while the upper halves of registers are in use.
func (a *isa) storeResult(v reg.VecVirtual, result gotypes.Component) {
	to, err := result.Resolve()
	if err != nil {
		panic(err)
	}
	if to.Type == types.Typ[types.Float64] {
		a.VMOVSD(v.AsX(), to.Addr)
	} else {
		a.VMOVSS(v.AsX(), to.Addr)
	}
}
