package main

import "github.com/mmcloughlin/avo/reg"

// rows are the sums of rows.
func rows(a *isa) {
	a.function("addScaled", "(to, from []float32, by float32)", "adds by·from to to, which is not shorter.")
	to, from, n, by := a.slice("to"), a.slice("from"), a.length("from"), a.spread("by")
	a.over(n, func(i reg.Register) {
		sum := a.load(element(to, i))
		a.VFMADD231PS(a.load(element(from, i)), by, sum)
		a.store(sum, element(to, i))
	})
	a.end()
}
