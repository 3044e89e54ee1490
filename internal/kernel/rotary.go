package kernel

import "slices"

// Rotate rotates the pairs of numbers of each head of x [T D] by angles that grow with a token's position in its text
// (Su et al. 2021, "RoFormer"): number l of a head's first half with number l of its second. angles [longest d] has for
// each position the cosines of the d/2 pairs, then their sines. Text b is rows starts[b]:starts[b+1].
func Rotate(x, angles []float32, starts []int, heads, width int) {
	rotateTiles.run(starts[len(starts)-1], rowTile, rotateArgs{x, angles, starts, heads, width, 1})
}

// RotateBack is the inverse of Rotate, and its backward: the gradient at the result becomes that at x.
func RotateBack(d, angles []float32, starts []int, heads, width int) {
	rotateTiles.run(starts[len(starts)-1], rowTile, rotateArgs{d, angles, starts, heads, width, -1})
}

type rotateArgs struct {
	x, angles    []float32
	starts       []int
	heads, width int
	sign         float32
}

var rotateTiles = tiled(func(a *rotateArgs, lo, hi int) {
	text, _ := slices.BinarySearch(a.starts, lo+1) // the first text that begins after row lo
	text--
	d := a.width / a.heads
	for i := lo; i < hi; i++ {
		for i >= a.starts[text+1] {
			text++
		}
		angles := a.angles[(i-a.starts[text])*d:][:d]
		row := a.x[i*a.width : (i+1)*a.width]
		for h := 0; h < a.width; h += d {
			use.rotate(row[h:h+d/2], row[h+d/2:h+d], angles[:d/2], angles[d/2:], a.sign)
		}
	}
})

// rotatePlain rotates the points (x, y) of a head by angles with the given cosines and sines.
func rotatePlain(x, y, cos, sin []float32, sign float32) {
	y, cos, sin = y[:len(x)], cos[:len(x)], sin[:len(x)]
	for l, v := range x {
		s := sign * sin[l]
		x[l], y[l] = v*cos[l]-y[l]*s, y[l]*cos[l]+v*s
	}
}
