package kernel

import "math"

// Values of gradients in bfloat16: what one process sends to another has half the size.

// RoundBFloat16 rounds values to bfloat16, to nearest, ties to even; denormals become zeros.
func RoundBFloat16(x []float32) { roundTiles.run(len(x), elementTile, x) }

var roundTiles = tiled(func(x *[]float32, lo, hi int) {
	for i, v := range (*x)[lo:hi] {
		(*x)[lo+i] = roundBFloat16(v)
	}
})

// BFloat16Pairs returns how many float32 values n values take as pairs.
func BFloat16Pairs(n int) int { return pairDepth(n) }

// PackBFloat16 writes the pairs of values, rounded to bfloat16, to out; the last is filled up with 0.
func PackBFloat16(out, x []float32) {
	packTiles.run(len(out), elementTile, [2][]float32{out, x})
}

var packTiles = tiled(func(a *[2][]float32, lo, hi int) {
	out, x := a[0][lo:hi], a[1][2*lo:min(2*hi, len(a[1]))]
	whole := len(x) / 2
	if whole > 0 {
		pairRowPlain(&out[0], &x[0], whole)
	}
	if whole < len(out) {
		out[whole] = pairOf(x[2*whole], 0)
	}
})

// UnpackBFloat16 sets out to the values of pairs.
func UnpackBFloat16(out, pairs []float32) {
	unpackTiles.run(len(pairs), elementTile, [2][]float32{out, pairs})
}

var unpackTiles = tiled(func(a *[2][]float32, lo, hi int) {
	out := a[0][2*lo : min(2*hi, len(a[0]))]
	for i, pair := range a[1][lo:hi] {
		bits := math.Float32bits(pair)
		out[2*i] = upper(bits << 16)
		if 2*i+1 < len(out) {
			out[2*i+1] = upper(bits)
		}
	}
})

// AddBFloat16 adds the values of pairs to sums, and rounds these to bfloat16.
func AddBFloat16(sums, pairs []float32) {
	addPairTiles.run(len(pairs), elementTile, [2][]float32{sums, pairs})
}

var addPairTiles = tiled(func(a *[2][]float32, lo, hi int) {
	sums := a[0][2*lo : min(2*hi, len(a[0]))]
	for i, pair := range a[1][lo:hi] {
		bits := math.Float32bits(pair)
		sums[2*i] = roundBFloat16(sums[2*i] + upper(bits<<16))
		if 2*i+1 < len(sums) {
			sums[2*i+1] = roundBFloat16(sums[2*i+1] + upper(bits))
		}
	}
})

// roundBFloat16 returns x rounded to bfloat16.
func roundBFloat16(x float32) float32 { return math.Float32frombits(uint32(toBFloat16(x)) << 16) }
