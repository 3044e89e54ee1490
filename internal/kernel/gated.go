package kernel

// GatedGELU writes GELU(x)·gate to out (GeGLU, Shazeer 2020, "GLU Variants Improve Transformer").
func GatedGELU(out, x, gate []float32) {
	gatedTiles.run(len(x), elementTile, [3][]float32{out, x, gate})
}

var gatedTiles = tiled(func(a *[3][]float32, lo, hi int) {
	out := a[0][lo:hi]
	use.gelu(out, a[1][lo:hi])
	use.multiply(out, a[2][lo:hi])
})

// GatedGELUBackward writes the gradients of GatedGELU's x and gate to d and dGate. d is the gradient at its result
// before.
func GatedGELUBackward(d, dGate, x, gate []float32) {
	gatedBackwardTiles.run(len(x), elementTile, [4][]float32{d, dGate, x, gate})
}

var gatedBackwardTiles = tiled(func(a *[4][]float32, lo, hi int) {
	d, dGate, x := a[0][lo:hi], a[1][lo:hi], a[2][lo:hi]
	use.gelu(dGate, x)
	use.multiply(dGate, d)
	use.multiply(d, a[3][lo:hi])
	use.geluGradient(d, x)
})

// multiplyPlain multiplies each number of x by that of by.
func multiplyPlain(x, by []float32) {
	by = by[:len(x)]
	for i, v := range by {
		x[i] *= v
	}
}
