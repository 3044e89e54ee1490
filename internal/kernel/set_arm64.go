package kernel

import "golang.org/x/sys/cpu"

// neon is the set of the 128-bit registers that all but the rarest of these processors have. Its loops are written by
// hand: what Go's assembler does not know stands in neon_arm64.h.
var neon = plain.called("neon")

// available lists the sets that this processor can run, the best last.
func available() []*set {
	there := []*set{&plain}
	if cpu.ARM64.HasASIMD {
		there = append(there, &neon)
	}
	return there
}
