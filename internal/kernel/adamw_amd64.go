package kernel

func init() { avx2.adamW, avx512.adamW = adamWAVX2, adamWAVX512 }
