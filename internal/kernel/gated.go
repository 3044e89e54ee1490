package kernel

// GatedGELUBackward is the backward of Epilogue.Gate: d is the gradient at GELU(x)·gate and becomes that at x. dGate
// gets the gradient at gate.
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
