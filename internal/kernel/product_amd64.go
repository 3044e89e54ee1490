package kernel

func init() {
	avx2.panel, avx512.panel = 16, 32
	avx2.tile = append(avx2.tile, nil, tile1AVX2, tile2AVX2, tile3AVX2, tile4AVX2, tile5AVX2, tile6AVX2)
	avx512.tile = append(avx512.tile, nil, tile1AVX512, tile2AVX512, tile3AVX512, tile4AVX512, tile5AVX512, tile6AVX512,
		tile7AVX512, tile8AVX512, tile9AVX512, tile10AVX512, tile11AVX512, tile12AVX512)
	avx2.copyWide, avx512.copyWide = copyWideAVX2, copyWideAVX512
	avx2.copyNarrow, avx512.copyNarrow = copyNarrowAVX2, copyNarrowAVX512
	avx2.transpose8, avx512.transpose8 = transpose8AVX2, transpose8AVX2
}
