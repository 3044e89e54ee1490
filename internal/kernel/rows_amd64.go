package kernel

func init() {
	avx2.addRows, avx512.addRows = addRowsAVX2, addRowsAVX512
	avx2.scale, avx512.scale = scaleAVX2, scaleAVX512
}
