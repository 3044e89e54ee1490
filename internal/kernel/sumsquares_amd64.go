package kernel

func init() { avx2.sumSquares, avx512.sumSquares = sumSquaresAVX2, sumSquaresAVX512 }
