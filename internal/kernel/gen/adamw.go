package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// adamW is one pass over weights, moments and gradients. It is bound by memory, not by its divisions and square roots,
// which the processor rounds exactly.
func adamW(a *isa) {
	a.function("adamW", "(w, m, v, g []float32, c *[8]float32)",
		"updates weights w and moments m and v by gradients g.")
	weights, means, squares, gradients := a.slice("w"), a.slice("m"), a.slice("v"), a.slice("g")
	n, c := a.length("w"), a.Load(a.Param("c"), a.GP64())
	field := func(i int) reg.VecVirtual { // in the order of the package's adamWStep
		r := a.vector()
		a.VBROADCASTSS(operand.Mem{Base: c, Disp: 4 * i}, r)
		return r
	}
	scale, rise1, beta2, rise2 := field(0), field(1), field(2), field(3)
	keep, size, root, epsilon := field(4), field(5), field(6), field(7)
	a.over(n, func(i reg.Register) {
		d, m, v := a.load(element(gradients, i)), a.load(element(means, i)), a.load(element(squares, i))
		a.VMULPS(scale, d, d)
		t := a.vector()
		a.VSUBPS(m, d, t)
		a.VFMADD231PS(t, rise1, m)
		a.store(m, element(means, i))
		a.VMULPS(rise2, d, t)
		a.VMULPS(beta2, v, v)
		a.VFMADD231PS(t, d, v)
		a.store(v, element(squares, i))

		a.VSQRTPS(v, v)
		a.VFMADD213PS(epsilon, root, v) // v·root + epsilon
		a.VMULPS(size, m, m)
		a.VDIVPS(v, m, m)
		w := a.load(element(weights, i))
		a.VMULPS(keep, w, w)
		a.VSUBPS(m, w, w)
		a.store(w, element(weights, i))
	})
	a.end()
}
