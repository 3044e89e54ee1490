package kernel

func init() {
	avx2.layerNorm, avx512.layerNorm = layerNormAVX2, layerNormAVX512
	avx2.layerNormSums, avx512.layerNormSums = layerNormSumsAVX2, layerNormSumsAVX512
	avx2.layerNormGradient, avx512.layerNormGradient = layerNormGradientAVX2, layerNormGradientAVX512
}
