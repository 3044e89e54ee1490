package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C gen .

// available lists the sets that this processor can run, the best last.
func available() []*set {
	sets := []*set{&plain}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &avx2)
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		sets = append(sets, &avx512)
	}
	return sets
}

var avx2 = set{
	name: "avx2",

	addScaled: addScaledAVX2,
	addRows:   addRowsAVX2,
	scale:     scaleAVX2,
	multiply:  multiplyAVX2,
	rotate:    rotateAVX2,

	sumSquares: sumSquaresAVX2,
	dot64:      dot64AVX2,

	layerNorm:         layerNormAVX2,
	layerNormSums:     layerNormSumsAVX2,
	layerNormGradient: layerNormGradientAVX2,

	dot:             dotAVX2,
	softmaxGradient: softmaxGradientAVX2,

	drop:       dropAVX2,
	addDropped: addDroppedAVX2,

	adamW: adamWAVX2,

	gelu:         geluAVX2,
	geluGradient: geluGradientAVX2,
	geluBackward: geluBackwardAVX2,
	tanh:         tanhAVX2,

	maximum:         maximumAVX2,
	exps:            expsAVX2,
	softmax:         softmaxAVX2,
	softmaxBackward: softmaxBackwardAVX2,

	tiles: [3]tiles{
		Float32: {
			run:   []tileFunc{tile1AVX2, tile2AVX2, tile3AVX2, tile4AVX2, tile5AVX2, tile6AVX2},
			panel: 16, lane: 1, depthMultiple: 1,
			multiplyAdds: multiplyAddsAVX2, operations: multiplyAddsOfAVX2,
		},
		BFloat16: plain.tiles[BFloat16],
		Int8: {
			run: []tileFunc{wordTile1AVX2, wordTile2AVX2, wordTile3AVX2, wordTile4AVX2, wordTile5AVX2,
				wordTile6AVX2},
			panel: 16, lane: 2, depthMultiple: 1,
			multiplyAdds: wordMultiplyAddsAVX2, operations: 2 * multiplyAddsOfAVX2,
		},
	},
	pairRow:    pairRowPlain,
	pairRows:   pairRowsPlain,
	quantize:   quantizeWordsAVX2,
	dequantize: dequantizeAVX2,
	extremes:   extremesAVX2,

	copyWide:   copyWideAVX2,
	copyNarrow: copyNarrowAVX2,
	transpose8: transpose8AVX2,

	readAll: readAllAVX2,
}

// Operations of a round of float32 multiply-adds.
const (
	multiplyAddsOfAVX2   = 12 * 8 * 2
	multiplyAddsOfAVX512 = 28 * 16 * 2
)

// avx512F is the set for AVX-512 without instructions for integers in bytes and for bfloat16.
var avx512F = set{
	name: "avx512",

	addScaled: addScaledAVX512,
	addRows:   addRowsAVX512,
	scale:     scaleAVX512,
	multiply:  multiplyAVX512,
	rotate:    rotateAVX512,

	sumSquares: sumSquaresAVX512,
	dot64:      dot64AVX2,

	layerNorm:         layerNormAVX512,
	layerNormSums:     layerNormSumsAVX512,
	layerNormGradient: layerNormGradientAVX512,

	dot:             dotAVX512,
	softmaxGradient: softmaxGradientAVX512,

	drop:       dropAVX512,
	addDropped: addDroppedAVX512,

	adamW: adamWAVX512,

	gelu:         geluAVX512,
	geluGradient: geluGradientAVX512,
	geluBackward: geluBackwardAVX512,
	tanh:         tanhAVX512,

	maximum:         maximumAVX512,
	exps:            expsAVX512,
	softmax:         softmaxAVX512,
	softmaxBackward: softmaxBackwardAVX512,

	tiles: [3]tiles{
		Float32: {
			run: []tileFunc{
				tile1AVX512, tile2AVX512, tile3AVX512, tile4AVX512, tile5AVX512, tile6AVX512, tile7AVX512,
				tile8AVX512, tile9AVX512, tile10AVX512, tile11AVX512, tile12AVX512,
			},
			panel: 32, lane: 1, depthMultiple: 1,
			multiplyAdds: multiplyAddsAVX512, operations: multiplyAddsOfAVX512,
		},
		BFloat16: plain.tiles[BFloat16],
		Int8: {
			run: []tileFunc{
				wordTile1AVX512, wordTile2AVX512, wordTile3AVX512, wordTile4AVX512, wordTile5AVX512,
				wordTile6AVX512, wordTile7AVX512, wordTile8AVX512, wordTile9AVX512, wordTile10AVX512,
				wordTile11AVX512, wordTile12AVX512,
			},
			panel: 32, lane: 2, depthMultiple: 1,
			multiplyAdds: wordMultiplyAddsAVX512, operations: 2 * multiplyAddsOfAVX512,
		},
	},
	pairRow:    pairRowPlain,
	pairRows:   pairRowsPlain,
	quantize:   quantizeWordsAVX2,
	dequantize: dequantizeAVX512,
	extremes:   extremesAVX512,

	copyWide:   copyWideAVX512,
	copyNarrow: copyNarrowAVX512,
	transpose8: transpose8AVX2,

	readAll: readAllAVX512,
}

var avx512 = avx512F.with(cpu.X86.HasAVX512VNNI, cpu.X86.HasAVX512BF16)

// with returns the set with the instructions for integers in bytes (VNNI) and for pairs of bfloat16.
func (s set) with(bytes, pairs bool) set {
	if bytes {
		s.quantize = quantizeBytesAVX512
		s.tiles[Int8] = tiles{
			run: []tileFunc{
				byteTile1AVX512, byteTile2AVX512, byteTile3AVX512, byteTile4AVX512, byteTile5AVX512,
				byteTile6AVX512, byteTile7AVX512, byteTile8AVX512, byteTile9AVX512, byteTile10AVX512,
				byteTile11AVX512, byteTile12AVX512,
			},
			panel: 32, lane: 4, depthMultiple: 1,
			multiplyAdds: byteMultiplyAddsAVX512, operations: 4 * multiplyAddsOfAVX512,
		}
	}
	if pairs {
		s.pairRow, s.pairRows = pairRowAVX512, pairRowsAVX512
		s.tiles[BFloat16] = tiles{
			run: []tileFunc{
				pairTile1AVX512, pairTile2AVX512, pairTile3AVX512, pairTile4AVX512, pairTile5AVX512,
				pairTile6AVX512, pairTile7AVX512, pairTile8AVX512, pairTile9AVX512, pairTile10AVX512,
				pairTile11AVX512, pairTile12AVX512,
			},
			panel: 32, lane: 2, depthMultiple: 1,
			multiplyAdds: pairMultiplyAddsAVX512, operations: 2 * multiplyAddsOfAVX512,
		}
	}
	return s
}

// pause runs PAUSE instructions for some hundred cycles, which leave the core to its other thread.
func pause()
