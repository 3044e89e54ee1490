package kernel

import (
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// available lists the sets that this processor can run, the best last.
func available() []*set {
	sets := []*set{&plain}
	if cpu.ARM64.HasASIMD {
		sets = append(sets, &neon)
	}
	return sets
}

// neonWords is the set for 128-bit registers, which nearly all arm64 processors have. Its loops are written by hand:
// neon_arm64.h has the instructions that Go's assembler does not support.
var neonWords = set{
	name: "neon",

	addScaled: addScaledNEON,
	addRows:   addRowsNEON,
	scale:     scaleNEON,
	multiply:  multiplyPlain,
	rotate:    rotatePlain,

	sumSquares: sumSquaresNEON,
	dot64:      dot64Plain,

	layerNorm:         layerNormNEON,
	layerNormSums:     layerNormSumsNEON,
	layerNormGradient: layerNormGradientNEON,

	dot:             dotNEON,
	softmaxGradient: softmaxGradientNEON,

	drop:       dropNEON,
	addDropped: addDroppedNEON,

	adamW: adamWNEON,

	gelu:         geluNEON,
	geluGradient: geluGradientNEON,
	geluBackward: geluBackwardNEON,
	tanh:         tanhNEON,

	maximum:         maximumNEON,
	exps:            expsNEON,
	softmax:         softmaxNEON,
	softmaxBackward: softmaxBackwardNEON,

	tiles: [3]tiles{
		Float32: {
			run:   below(tile1NEON, tile2NEON, tile3NEON, tile4NEON, tile5NEON, tile6NEON),
			panel: 16, lane: 1, depthMultiple: 1,
			multiplyAdds: multiplyAddsNEON, operations: multiplyAddsOfNEON,
		},
		BFloat16: plain.tiles[BFloat16],
		Int8: {
			run: below(wordTile1NEON, wordTile2NEON, wordTile3NEON, wordTile4NEON, wordTile5NEON,
				wordTile6NEON),
			panel: 16, lane: 2, depthMultiple: 1,
			multiplyAdds: wordMultiplyAddsNEON, operations: 2 * multiplyAddsOfNEON,
		},
	},
	pairRow:    pairRowPlain,
	pairRows:   pairRowsPlain,
	quantize:   quantizeWordsNEON,
	dequantize: dequantizeNEON,
	extremes:   extremesNEON,

	copyWide:   copyWideNEON,
	copyNarrow: copyNarrowNEON,
	transpose8: transpose8NEON,

	readAll: readAllNEON,
}

var neon = neonWords.with(cpu.ARM64.HasASIMDDP)

// with returns the set with the instructions for integers in bytes (FEAT_DotProd). They multiply with signs: 128 is
// subtracted from the integers of a's rows, and from the one that stands for 0.
func (s set) with(bytes bool) set {
	if bytes {
		s.quantize, s.intShift = quantizeBytesNEON, 128
		s.tiles[Int8] = tiles{
			run: below(byteTile1NEON, byteTile2NEON, byteTile3NEON, byteTile4NEON, byteTile5NEON,
				byteTile6NEON),
			panel: 16, lane: 4, depthMultiple: 1,
			multiplyAdds: byteMultiplyAddsNEON, operations: 4 * multiplyAddsOfNEON,
		}
	}
	return s
}

const multiplyAddsOfNEON = 28 * 4 * 2 // operations of a round of float32

// pause yields to other goroutines.
func pause() { runtime.Gosched() }

// adamWNEON updates weights w and moments m and v by gradients g.
//
//go:noescape
func adamWNEON(w, m, v, g []float32, c *[8]float32)

// dropNEON writes to out x with a mask applied; the first element of x has the index first.
//
//go:noescape
func dropNEON(out, x []float32, key, counter uint64, bound uint32, scale float32, first int)

// addDroppedNEON writes to out the sum of to and x with a mask applied; the first element of x has the index first.
//
//go:noescape
func addDroppedNEON(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int)

// softmaxNEON replaces row by exp(row)/Σexp(row).
func softmaxNEON(row []float32) {
	sum := expsNEON(row, maximumNEON(row))
	scaleNEON(row, 1/sum)
}

// softmaxBackwardNEON replaces d by y·(d − Σy·d); y is not shorter.
func softmaxBackwardNEON(d, y []float32) { softmaxGradientNEON(d, y, dotNEON(d, y)) }

// maximumNEON returns the largest element: -Inf of an empty row, NaN where there is one.
//
//go:noescape
func maximumNEON(row []float32) float32

// expsNEON replaces row by exp(row−shift) and returns the sum.
//
//go:noescape
func expsNEON(row []float32, shift float32) float32

// geluNEON writes x·Φ(x) to out, which is not shorter.
//
//go:noescape
func geluNEON(out, x []float32)

// geluGradientNEON multiplies d by Φ(x) + x·φ(x).
//
//go:noescape
func geluGradientNEON(d, x []float32)

// geluBackwardNEON adds dOut·(Φ(x) + x·φ(x)) to dx.
//
//go:noescape
func geluBackwardNEON(dx, x, dOut []float32)

// tanhNEON writes the hyperbolic tangent of x to out, which is not shorter.
//
//go:noescape
func tanhNEON(out, x []float32)

// quantizeWordsNEON writes x·inverse, rounded to nearest, plus zero, within 0 and 255, as words.
func quantizeWordsNEON(out *float32, x []float32, inverse float32, zero int32) {
	whole := len(x) &^ 7
	quantizeWords8NEON(out, x[:whole], inverse, zero)
	words := unsafe.Slice((*uint16)(unsafe.Pointer(out)), len(x))
	for i := whole; i < len(x); i++ {
		words[i] = uint16(max(0, min(roundInt(x[i]*inverse, -255, 255)+zero, 255)))
	}
}

// quantizeBytesNEON writes x·inverse, rounded to nearest, plus zero, within 0 and 255, less 128.
func quantizeBytesNEON(out *float32, x []float32, inverse float32, zero int32) {
	whole := len(x) &^ 15
	quantizeBytes16NEON(out, x[:whole], inverse, zero)
	bytes := unsafe.Slice((*uint8)(unsafe.Pointer(out)), len(x))
	if whole < len(x) {
		quantizePlain((*float32)(unsafe.Pointer(&bytes[whole])), x[whole:], inverse, zero)
		for i := whole; i < len(x); i++ {
			bytes[i] ^= 0x80
		}
	}
}

// dequantizeNEON turns sums into values.
func dequantizeNEON(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32) {
	whole := len(c) &^ 3
	dequantize4NEON(c[:whole], sums, scales, bias, zero, scale)
	dequantizePlain(c[whole:], sums[whole:], scales[whole:], bias[whole:], zero, scale)
}

// extremesNEON returns the smallest and the largest element or 0, NaN if one is not finite.
func extremesNEON(row []float32) (low, high float32) {
	whole := len(row) &^ 3
	low, high = extremesPlain(row[whole:])
	low4, high4 := extremes4NEON(row[:whole])
	return min(low, low4), max(high, high4)
}

// quantizeBytes16NEON is quantizeBytesNEON of a multiple of 16 values.
//
//go:noescape
func quantizeBytes16NEON(out *float32, x []float32, inverse float32, zero int32)

// quantizeWords8NEON is quantizeWordsNEON of a multiple of 8 values.
//
//go:noescape
func quantizeWords8NEON(out *float32, x []float32, inverse float32, zero int32)

// dequantize4NEON is dequantizeNEON of a multiple of four sums.
//
//go:noescape
func dequantize4NEON(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32)

// extremes4NEON is extremesNEON of a multiple of four values.
//
//go:noescape
func extremes4NEON(row []float32) (low, high float32)

// byteMultiplyAddsNEON runs rounds of 28 independent sums of products of bytes in registers.
//
//go:noescape
func byteMultiplyAddsNEON(times int)

// byteTile1NEON is tile1NEON for lanes of four bytes, and sums in int32.
//
//go:noescape
func byteTile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// byteTile2NEON to byteTile6NEON are byteTile1NEON for so many rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func byteTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func byteTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func byteTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func byteTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func byteTile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordMultiplyAddsNEON runs rounds of 28 independent sums of products of words in registers, each twice.
//
//go:noescape
func wordMultiplyAddsNEON(times int)

// wordTile1NEON is tile1NEON for lanes of two words, and sums in int32.
//
//go:noescape
func wordTile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordTile2NEON to wordTile6NEON are wordTile1NEON for so many rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func wordTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func wordTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func wordTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func wordTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func wordTile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

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

// multiplyAddsNEON runs rounds of 28 independent fused multiply-adds in registers.
//
//go:noescape
func multiplyAddsNEON(times int)

// readAllNEON reads x, whose length is a multiple of 256.
//
//go:noescape
func readAllNEON(x []float32)

// tile1NEON writes from + a·b to c, 1 row of 16: a [1 k] has column stride aCol, b [k 16] has no gaps. It prefetches
// the k/2 cache lines at next.
//
//go:noescape
func tile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile2NEON to tile6NEON are tile1NEON for so many rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func tile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func tile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func tile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func tile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

//go:noescape
func tile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// copyWideNEON copies rows of 16 values, with row stride xRow, to out without gaps.
//
//go:noescape
func copyWideNEON(out, x *float32, xRow, rows int)

// copyNarrowNEON copies rows of cols values, at most 8, with row stride xRow, to out without gaps. It reads and writes
// 8 values a row.
//
//go:noescape
func copyNarrowNEON(out, x *float32, xRow, rows, cols int)

// transpose8NEON writes 8 rows of x, with row stride xRow, to 8 columns of out, with row stride outRow: 8·times columns
// of x to as many rows.
//
//go:noescape
func transpose8NEON(out, x *float32, outRow, xRow, times int)

// addScaledNEON adds by·from to to, which is not shorter.
//
//go:noescape
func addScaledNEON(to, from []float32, by float32)

// scaleNEON multiplies x by a number.
//
//go:noescape
func scaleNEON(x []float32, by float32)

// addRowsNEON adds the rows of x, each as long as sum, to sum, first to last.
//
//go:noescape
func addRowsNEON(sum, x []float32)

// dotNEON returns Σ x·y; y is not shorter.
//
//go:noescape
func dotNEON(x, y []float32) float32

// softmaxGradientNEON replaces d by y·(d − mean); y is not shorter.
//
//go:noescape
func softmaxGradientNEON(d, y []float32, mean float32)

// sumSquaresNEON returns Σx².
//
//go:noescape
func sumSquaresNEON(x []float32) float64
