package kernel

import "math"

// Tanh writes the hyperbolic tangent of x to out, which may be x.
func Tanh(out, x []float32) { tanhTiles.run(len(x), elementTile, [2][]float32{out, x}) }

var tanhTiles = tiled(func(a *[2][]float32, lo, hi int) { use.tanh(a[0][lo:hi], a[1][lo:hi]) })

func tanhPlain(out, x []float32) {
	for i, v := range x {
		out[i] = float32(math.Tanh(float64(v)))
	}
}
