package kernel

func init() {
	avx2.drop, avx512.drop = dropAVX2, dropAVX512
	avx2.addDropped, avx512.addDropped = addDroppedAVX2, addDroppedAVX512
}
