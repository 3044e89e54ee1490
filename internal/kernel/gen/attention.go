package main

import (
	"github.com/mmcloughlin/avo/reg"
)

// attention are the loops over rows of attention, except its products and its softmax.
func attention(a *isa) {
	a.function("dot", "(x, y []float32) float32", "returns Σ x·y.")
	x, y, n := a.slice("x"), a.slice("y"), a.length("x")
	sums := a.zeros(2)
	a.unrolled(n, len(sums), func(at place, k int) {
		a.VFMADD231PS(a.load(at(x)), a.load(at(y)), sums[k])
	})
	a.storeResult(a.sumOf(sums), a.ReturnIndex(0))
	a.end()

	a.function("softmaxGradient", "(d, y []float32, mean float32)", "replaces d by y·(d − mean).")
	d, y, n, mean := a.slice("d"), a.slice("y"), a.length("d"), a.spread("mean")
	a.over(n, func(i reg.Register) {
		v := a.load(element(d, i))
		a.VSUBPS(mean, v, v)
		a.VMULPS(a.load(element(y, i)), v, v)
		a.store(v, element(d, i))
	})
	a.end()
}
