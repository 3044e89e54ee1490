package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C gen .

var (
	avx2   = plain.called("avx2")
	avx512 = plain.called("avx512")
)

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

func init() {
	avx2.addScaled, avx512.addScaled = addScaledAVX2, addScaledAVX512
	avx2.multiply, avx512.multiply = multiplyAVX2, multiplyAVX512
	avx2.rotate, avx512.rotate = rotateAVX2, rotateAVX512
	avx2.multiplyAdds, avx2.roundFlops, avx2.readAll = multiplyAddsAVX2, 12*8*2, readAllAVX2
	avx512.multiplyAdds, avx512.roundFlops, avx512.readAll = multiplyAddsAVX512, 28*16*2, readAllAVX512
}

func init() { avx2.adamW, avx512.adamW = adamWAVX2, adamWAVX512 }

func init() {
	avx2.dot, avx512.dot = dotAVX2, dotAVX512
	avx2.softmaxGradient, avx512.softmaxGradient = softmaxGradientAVX2, softmaxGradientAVX512
}

func init() {
	if !cpu.X86.HasAVX512BF16 {
		return
	}
	avx512.pairTile = append(avx512.pairTile, nil, pairTile1AVX512, pairTile2AVX512, pairTile3AVX512, pairTile4AVX512,
		pairTile5AVX512, pairTile6AVX512, pairTile7AVX512, pairTile8AVX512, pairTile9AVX512, pairTile10AVX512,
		pairTile11AVX512, pairTile12AVX512)
	avx512.pairRow, avx512.pairRows = pairRowAVX512, pairRowsAVX512
	avx512.pairMultiplyAdds = pairMultiplyAddsAVX512
}

func init() { avx2.dot64, avx512.dot64 = dot64AVX2, dot64AVX2 }

func init() {
	avx2.drop, avx512.drop = dropAVX2, dropAVX512
	avx2.addDropped, avx512.addDropped = addDroppedAVX2, addDroppedAVX512
}

func init() {
	avx2.gelu, avx512.gelu = geluAVX2, geluAVX512
	avx2.geluGradient, avx512.geluGradient = geluGradientAVX2, geluGradientAVX512
	avx2.geluBackward, avx512.geluBackward = geluBackwardAVX2, geluBackwardAVX512
}

func init() {
	avx2.intTile = append(avx2.intTile, nil, wordTile1AVX2, wordTile2AVX2, wordTile3AVX2, wordTile4AVX2, wordTile5AVX2,
		wordTile6AVX2)
	avx2.intsOfLane, avx2.quantize, avx2.intMultiplyAdds = 2, quantizeWordsAVX2, wordMultiplyAddsAVX2
	avx2.dequantize, avx2.extremes = dequantizeAVX2, extremesAVX2
	avx512.dequantize, avx512.extremes = dequantizeAVX512, extremesAVX512
	if cpu.X86.HasAVX512VNNI {
		avx512.useBytes()
	} else {
		avx512.useWords()
	}
}

// useBytes makes the set for AVX-512 multiply bytes.
func (s *set) useBytes() {
	s.intTile = append([]tileFunc{nil}, byteTile1AVX512, byteTile2AVX512, byteTile3AVX512, byteTile4AVX512,
		byteTile5AVX512, byteTile6AVX512, byteTile7AVX512, byteTile8AVX512, byteTile9AVX512, byteTile10AVX512,
		byteTile11AVX512, byteTile12AVX512)
	s.intsOfLane, s.quantize, s.intMultiplyAdds = 4, quantizeBytesAVX512, byteMultiplyAddsAVX512
}

// useWords makes the set for AVX-512 multiply words of 16 bits.
func (s *set) useWords() {
	s.intTile = append([]tileFunc{nil}, wordTile1AVX512, wordTile2AVX512, wordTile3AVX512, wordTile4AVX512,
		wordTile5AVX512, wordTile6AVX512, wordTile7AVX512, wordTile8AVX512, wordTile9AVX512, wordTile10AVX512,
		wordTile11AVX512, wordTile12AVX512)
	s.intsOfLane, s.quantize, s.intMultiplyAdds = 2, quantizeWordsAVX2, wordMultiplyAddsAVX512
}

func init() {
	avx2.layerNorm, avx512.layerNorm = layerNormAVX2, layerNormAVX512
	avx2.layerNormSums, avx512.layerNormSums = layerNormSumsAVX2, layerNormSumsAVX512
	avx2.layerNormGradient, avx512.layerNormGradient = layerNormGradientAVX2, layerNormGradientAVX512
}

// pause runs PAUSE instructions for some hundred cycles, which leave the core to its other thread.
func pause()

func init() {
	avx2.panel, avx512.panel = 16, 32
	avx2.tile = append(avx2.tile, nil, tile1AVX2, tile2AVX2, tile3AVX2, tile4AVX2, tile5AVX2, tile6AVX2)
	avx512.tile = append(avx512.tile, nil, tile1AVX512, tile2AVX512, tile3AVX512, tile4AVX512, tile5AVX512, tile6AVX512,
		tile7AVX512, tile8AVX512, tile9AVX512, tile10AVX512, tile11AVX512, tile12AVX512)
	avx2.copyWide, avx512.copyWide = copyWideAVX2, copyWideAVX512
	avx2.copyNarrow, avx512.copyNarrow = copyNarrowAVX2, copyNarrowAVX512
	avx2.transpose8, avx512.transpose8 = transpose8AVX2, transpose8AVX2
}

func init() {
	avx2.addRows, avx512.addRows = addRowsAVX2, addRowsAVX512
	avx2.scale, avx512.scale = scaleAVX2, scaleAVX512
}

func init() {
	avx2.maximum, avx512.maximum = maximumAVX2, maximumAVX512
	avx2.exps, avx512.exps = expsAVX2, expsAVX512
	avx2.softmax, avx512.softmax = softmaxAVX2, softmaxAVX512
	avx2.softmaxBackward, avx512.softmaxBackward = softmaxBackwardAVX2, softmaxBackwardAVX512
}

func init() { avx2.sumSquares, avx512.sumSquares = sumSquaresAVX2, sumSquaresAVX512 }

func init() { avx2.tanh, avx512.tanh = tanhAVX2, tanhAVX512 }
