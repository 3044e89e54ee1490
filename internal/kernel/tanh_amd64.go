package kernel

func init() { avx2.tanh, avx512.tanh = tanhAVX2, tanhAVX512 }
