package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func init() {
	neon.dequantize, neon.extremes = dequantizeNEON, extremesNEON
	if cpu.ARM64.HasASIMDDP {
		neon.useBytes()
	} else {
		neon.useWords()
	}
}

// useBytes makes the set multiply bytes, with the instructions of FEAT_DotProd, which have signs: 128 is subtracted
// from the integers of a's rows, and from the one that stands for 0.
func (s *set) useBytes() {
	s.intTile = []tileFunc{nil}
	for i, tile := range []tileNEON{byteTile1NEON, byteTile2NEON, byteTile3NEON, byteTile4NEON, byteTile5NEON,
		byteTile6NEON} {
		s.intTile = append(s.intTile, tile.below(i+1))
	}
	s.intsOfLane, s.intShift, s.quantize, s.intMultiplyAdds = 4, 128, quantizeBytesNEON, byteMultiplyAddsNEON
}

// useWords makes the set multiply words of 16 bits.
func (s *set) useWords() {
	s.intTile = []tileFunc{nil}
	for i, tile := range []tileNEON{wordTile1NEON, wordTile2NEON, wordTile3NEON, wordTile4NEON, wordTile5NEON,
		wordTile6NEON} {
		s.intTile = append(s.intTile, tile.below(i+1))
	}
	s.intsOfLane, s.intShift, s.quantize, s.intMultiplyAdds = 2, 0, quantizeWordsNEON, wordMultiplyAddsNEON
}

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

// byteTile2NEON is byteTile1NEON for 2 rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func byteTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// byteTile3NEON is byteTile2NEON for 3 rows.
//
//go:noescape
func byteTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// byteTile4NEON is byteTile2NEON for 4 rows.
//
//go:noescape
func byteTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// byteTile5NEON is byteTile2NEON for 5 rows.
//
//go:noescape
func byteTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// byteTile6NEON is byteTile2NEON for 6 rows.
//
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

// wordTile2NEON is wordTile1NEON for 2 rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func wordTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordTile3NEON is wordTile2NEON for 3 rows.
//
//go:noescape
func wordTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordTile4NEON is wordTile2NEON for 4 rows.
//
//go:noescape
func wordTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordTile5NEON is wordTile2NEON for 5 rows.
//
//go:noescape
func wordTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// wordTile6NEON is wordTile2NEON for 6 rows.
//
//go:noescape
func wordTile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
