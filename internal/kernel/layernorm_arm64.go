package kernel

import "math"

func init() {
	neon.layerNorm, neon.layerNormSums, neon.layerNormGradient = layerNormNEON, layerNormSumsNEON, layerNormGradientNEON
}

// layerNormNEON reads the row, which is in the L1 cache, three times: for an approximate mean, for the sums of the
// deviations from it and of their squares, which give the exact mean and the variance, and to normalise.
func layerNormNEON(out, x, gain, bias []float32, epsilon float32) (mean, scale float32) {
	n := float32(len(x))
	mean = sumNEON(x) / n
	around, squares := sumsAroundNEON(x, mean)
	off := around / n
	mean += off
	variance := max(squares/n-float32(off*off), 0) // which rounding must not make negative
	scale = 1 / float32(math.Sqrt(float64(variance+epsilon)))
	normalizeNEON(out, x, gain, bias, mean, scale)
	return mean, scale
}

// sumNEON returns Σx.
//
//go:noescape
func sumNEON(x []float32) float32

// sumsAroundNEON returns Σ(x−mean) and Σ(x−mean)².
//
//go:noescape
func sumsAroundNEON(x []float32, mean float32) (sum, squares float32)

// normalizeNEON writes (x−mean)·scale·gain + bias to out; none is shorter than x.
//
//go:noescape
func normalizeNEON(out, x, gain, bias []float32, mean, scale float32)

// layerNormSumsNEON adds a row's gradients of gain and bias to dGain and dBias, and returns the sums of g = dOut·gain
// and of g times the normalised row.
//
//go:noescape
func layerNormSumsNEON(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32)

// layerNormGradientNEON adds scale·(g − meanG − n·meanGN) to dx, with g = dOut·gain and n the normalised row.
//
//go:noescape
func layerNormGradientNEON(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32)
