package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows are sums, products and rotations of rows.
func rows(a *isa) {
	a.function("addScaled", "(to, from []float32, by float32)", "adds by·from to to, which is not shorter.")
	to, from, n, by := a.slice("to"), a.slice("from"), a.length("from"), a.spread("by")
	a.over(n, func(i reg.Register) {
		sum := a.load(element(to, i))
		a.VFMADD231PS(a.load(element(from, i)), by, sum)
		a.store(sum, element(to, i))
	})
	a.end()

	a.function("scale", "(x []float32, by float32)", "multiplies x by a number.")
	at, n, by := a.slice("x"), a.length("x"), a.spread("by")
	a.over(n, func(i reg.Register) {
		v := a.load(element(at, i))
		a.VMULPS(by, v, v)
		a.store(v, element(at, i))
	})
	a.end()

	a.function("multiply", "(x, by []float32)", "multiplies each number of x by that of by, which is not shorter.")
	at, from, n = a.slice("x"), a.slice("by"), a.length("x")
	a.over(n, func(i reg.Register) {
		v := a.load(element(at, i))
		a.VMULPS(a.load(element(from, i)), v, v)
		a.store(v, element(at, i))
	})
	a.end()

	rotate(a)
	addRows(a)
}

// rotate rounds each product and then their sum: without fused multiply-adds, as the plain version does on amd64.
func rotate(a *isa) {
	a.function("rotate", "(x, y, cos, sin []float32, sign float32)",
		"rotates the points (x, y) by angles with the given cosines and sines.")
	x, y, cosines, sines := a.slice("x"), a.slice("y"), a.slice("cos"), a.slice("sin")
	n, sign := a.length("x"), a.spread("sign")
	a.over(n, func(i reg.Register) {
		u, v := a.load(element(x, i)), a.load(element(y, i))
		cos, sin := a.load(element(cosines, i)), a.load(element(sines, i))
		a.VMULPS(sign, sin, sin)
		aside := a.vector()
		a.VMULPS(v, sin, aside)
		a.VMULPS(u, sin, sin)
		a.VMULPS(cos, u, u)
		a.VMULPS(cos, v, v)
		a.VSUBPS(aside, u, u)
		a.VADDPS(sin, v, v)
		a.store(u, element(x, i))
		a.store(v, element(y, i))
	})
	a.end()
}

// addRows adds four rows at a time, for which a register of the sum is read and written once.
func addRows(a *isa) {
	const together = 4
	a.function("addRows", "(sum, x []float32)", "adds the rows of x, each as long as sum, to sum, first to last.")
	sum, width, at, left := a.slice("sum"), a.length("sum"), a.slice("x"), a.length("x")
	block, single, done := a.label("block"), a.label("singleRow"), a.label("rowsDone")
	four := a.GP64() // times the width: the elements of four rows, and the bytes of one
	a.MOVQ(width, four)
	a.SHLQ(operand.U8(2), four)

	down := func(rows int) {
		bases := []reg.Register{at}
		for range rows - 1 {
			base := a.GP64()
			a.MOVQ(bases[len(bases)-1], base)
			a.ADDQ(four, base)
			bases = append(bases, base)
		}
		a.over(width, func(i reg.Register) {
			s := a.load(element(sum, i))
			for _, base := range bases {
				a.VADDPS(a.load(element(base, i)), s, s)
			}
			a.store(s, element(sum, i))
		})
		a.MOVQ(bases[rows-1], at)
		a.ADDQ(four, at)
	}
	a.SUBQ(four, left)
	a.JL(operand.LabelRef(single))
	a.Label(block)
	down(together)
	a.SUBQ(four, left)
	a.JGE(operand.LabelRef(block))

	a.Label(single)
	a.ADDQ(four, left)
	next := a.label("nextRow")
	a.Label(next)
	a.SUBQ(width, left)
	a.JL(operand.LabelRef(done))
	down(1)
	a.JMP(operand.LabelRef(next))
	a.Label(done)
	a.end()
}
