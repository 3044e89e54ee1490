package kernel

import "golang.org/x/sys/cpu"

// neon is the set for 128-bit registers, which nearly all arm64 processors have. Its loops are written by hand:
// neon_arm64.h has the instructions that Go's assembler does not support.
var neon = plain.called("neon")

// available lists the sets that this processor can run, the best last.
func available() []*set {
	sets := []*set{&plain}
	if cpu.ARM64.HasASIMD {
		sets = append(sets, &neon)
	}
	return sets
}
