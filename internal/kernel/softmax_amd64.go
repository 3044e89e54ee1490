package kernel

func init() {
	avx2.maximum, avx512.maximum = maximumAVX2, maximumAVX512
	avx2.exps, avx512.exps = expsAVX2, expsAVX512
	avx2.softmax, avx512.softmax = softmaxAVX2, softmaxAVX512
	avx2.softmaxBackward, avx512.softmaxBackward = softmaxBackwardAVX2, softmaxBackwardAVX512
}
