package kernel

func init() {
	avx2.gelu, avx512.gelu = geluAVX2, geluAVX512
	avx2.geluGradient, avx512.geluGradient = geluGradientAVX2, geluGradientAVX512
	avx2.geluBackward, avx512.geluBackward = geluBackwardAVX2, geluBackwardAVX512
}
