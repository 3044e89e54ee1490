package kernel

func init() {
	avx2.dot, avx512.dot = dotAVX2, dotAVX512
	avx2.softmaxGradient, avx512.softmaxGradient = softmaxGradientAVX2, softmaxGradientAVX512
}
