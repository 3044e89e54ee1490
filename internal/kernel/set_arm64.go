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

const multiplyAddsOfNEON = 28 * 4 * 2 // operations of a round of float32

// neonWords is the set for 128-bit registers, which nearly all arm64 processors have. Its loops are written by hand:
// neon_arm64.h has the instructions that Go's assembler does not support.
var neonWords = neonLoops.with(
	tiles{
		run: below(tilesNEON...), panel: 16, lane: 1, depthMultiple: 1,
		multiplyAdds: multiplyAddsNEON, operations: multiplyAddsOfNEON,
	}, tiles{
		run: below(wordTilesNEON...), panel: 16, lane: 2, depthMultiple: 1,
		multiplyAdds: wordMultiplyAddsNEON, operations: 2 * multiplyAddsOfNEON,
	}, quantizeWordsNEON)

var neon = neonWords.withBytes(cpu.ARM64.HasASIMDDP)

// withBytes returns the set with the instructions for integers in bytes (FEAT_DotProd). They multiply with signs: 128 is
// subtracted from the integers of a's rows, and from the one that stands for 0.
func (s set) withBytes(bytes bool) set {
	if bytes {
		s.quantize, s.intShift = quantizeBytesNEON, 128
		s.tiles[Int8] = tiles{
			run: below(byteTilesNEON...), panel: 16, lane: 4, depthMultiple: 1,
			multiplyAdds: byteMultiplyAddsNEON, operations: 4 * multiplyAddsOfNEON,
		}
	}
	return s
}

// pause yields to other goroutines.
func pause() { runtime.Gosched() }

func softmaxNEON(row []float32) {
	sum := expsNEON(row, maximumNEON(row))
	scaleNEON(row, 1/sum)
}

func softmaxBackwardNEON(d, y []float32) { softmaxGradientNEON(d, y, dotNEON(d, y)) }

// The loops in assembly of these functions take a multiple of the number of values in their names.

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

func dequantizeNEON(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32) {
	whole := len(c) &^ 3
	dequantize4NEON(c[:whole], sums, scales, bias, zero, scale)
	dequantizePlain(c[whole:], sums[whole:], scales[whole:], bias[whole:], zero, scale)
}

func extremesNEON(row []float32) (low, high float32) {
	whole := len(row) &^ 3
	low, high = extremesPlain(row[whole:])
	low4, high4 := extremes4NEON(row[:whole])
	return min(low, low4), max(high, high4)
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
