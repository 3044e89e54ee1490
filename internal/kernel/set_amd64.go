package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C gen .

var (
	avx2   = plain.called("avx2")
	avx512 = plain.called("avx512")
)

// available lists the sets that this processor can run, the best last.
func available() []*set {
	sets := []*set{&plain}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &avx2)
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		sets = append(sets, &avx512)
	}
	return sets
}

func init() {
	avx2.addScaled, avx512.addScaled = addScaledAVX2, addScaledAVX512
	avx2.multiply, avx512.multiply = multiplyAVX2, multiplyAVX512
	avx2.rotate, avx512.rotate = rotateAVX2, rotateAVX512
	avx2.multiplyAdds, avx2.roundFlops, avx2.readAll = multiplyAddsAVX2, 12*8*2, readAllAVX2
	avx512.multiplyAdds, avx512.roundFlops, avx512.readAll = multiplyAddsAVX512, 28*16*2, readAllAVX512
}
