package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmax are the loops over one row of logits: softmax as a whole, and the parts of it that attention in tiles uses.
func softmax(a *isa) {
	a.function("maximum", "(row []float32) float32",
		"returns the largest element: -Inf of an empty row, NaN where there is one.")
	a.storeResult(a.maximum(a.slice("row"), a.length("row")), a.ReturnIndex(0))
	a.end()

	a.function("exps", "(row []float32, shift float32) float32", "replaces row by exp(row−shift) and returns the sum.")
	a.storeResult(a.exps(a.slice("row"), a.length("row"), a.spread("shift")), a.ReturnIndex(0))
	a.end()

	a.function("softmax", "(row []float32)", "replaces row by exp(row)/Σexp(row).")
	row, n := a.slice("row"), a.length("row")
	top := a.maximum(row, n)
	a.spreadLowest(top)
	sum, by := a.exps(row, n, top), a.constant(1)
	a.VDIVSS(sum.AsX(), by.AsX(), by.AsX())
	a.spreadLowest(by)
	a.over(n, func(i reg.Register) {
		v := a.load(element(row, i))
		a.VMULPS(by, v, v)
		a.store(v, element(row, i))
	})
	a.end()

	a.function("softmaxBackward", "(d, y []float32)", "replaces d by y·(d − Σy·d); y is not shorter.")
	d, y, n := a.slice("d"), a.slice("y"), a.length("d")
	dots := a.zeros(4)
	a.unrolled(n, 4, func(at place, k int) {
		a.VFMADD231PS(a.load(at(d)), a.load(at(y)), dots[k])
	})
	mean := a.sumOf(dots)
	a.spreadLowest(mean)
	a.over(n, func(i reg.Register) {
		v := a.load(element(d, i))
		a.VSUBPS(mean, v, v)
		a.VMULPS(a.load(element(y, i)), v, v)
		a.store(v, element(d, i))
	})
	a.end()
}

// maximum returns the largest of n elements in its lowest lane. The processor's maximum drops NaN, so a second register
// marks the lanes with NaN by setting all their bits, which is a NaN too.
func (a *isa) maximum(row, n reg.Register) reg.VecVirtual {
	lowest, lost := a.vector(), a.zero()
	a.VBROADCASTSS(a.inMemory(float32(math.Inf(-1))), lowest)
	top := a.vectors(4)
	for _, t := range top {
		a.VMOVAPS(lowest, t)
	}
	a.unrolled(n, 4, func(at place, k int) {
		v := a.loadOr(at(row), lowest)
		a.VMAXPS(v, top[k], top[k])
		a.VORPS(a.unordered(v), lost, lost)
	})
	a.VMAXPS(top[2], top[0], top[0])
	a.VMAXPS(top[3], top[1], top[1])
	a.VMAXPS(top[1], top[0], top[0])
	a.fold(top[0], a.VMAXPS)
	a.fold(lost, a.VORPS)
	a.VORPS(lost, top[0], top[0])
	return top[0]
}

// fold combines all lanes of v into the lowest.
func (a *isa) fold(v reg.VecVirtual, with func(...operand.Op)) {
	x, upper := v.AsX(), a.XMM()
	a.halve(v, with)
	a.VMOVHLPS(x, x, upper)
	with(upper, x, x)
	a.VMOVSHDUP(x, upper)
	with(upper, x, x)
}

// loadOr reads a register; its lanes beyond a loop's end are those of other.
func (a *isa) loadOr(from operand.Mem, other reg.VecVirtual) reg.VecVirtual {
	v := a.load(from)
	switch {
	case a.mask == nil:
	case a.avx512():
		a.VBLENDMPS(v, other, a.mask, v)
	default:
		a.VBLENDVPS(a.mask, v, other, v)
	}
	return v
}

// unordered sets all bits of the lanes where v is NaN, and no others.
func (a *isa) unordered(v reg.VecVirtual) reg.VecVirtual {
	const isNaN = 3 // UNORD_Q
	m := a.vector()
	if a.avx512() {
		k := a.K()
		a.VCMPPS(operand.U8(isNaN), v, v, k)
		a.VPMOVM2D(k, m)
	} else {
		a.VCMPPS(operand.U8(isNaN), v, v, m)
	}
	return m
}

// exps replaces n elements by exp(x−shift) and returns their sum in its lowest lane.
func (a *isa) exps(row, n reg.Register, shift reg.VecVirtual) reg.VecVirtual {
	sums := a.zeros(2)
	a.together(n, len(sums), func(at []place) {
		x := a.loads(at, row)
		for i := range x {
			a.VSUBPS(shift, x[i], x[i])
		}
		a.exponentials(x)
		for i := range x {
			a.only(x[i])
			a.VADDPS(x[i], sums[i], sums[i])
			a.store(x[i], at[i](row))
		}
	})
	return a.sumOf(sums)
}
