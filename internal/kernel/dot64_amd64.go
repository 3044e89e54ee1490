package kernel

func init() { avx2.dot64, avx512.dot64 = dot64AVX2, dot64AVX2 }
