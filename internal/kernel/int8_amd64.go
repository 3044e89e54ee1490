package kernel

import "golang.org/x/sys/cpu"

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
