package kernel

import "golang.org/x/sys/cpu"

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
