package kernel

import "golang.org/x/sys/cpu"

// lesserSets lists sets that this processor would have with fewer instructions.
func lesserSets() []*set {
	if available()[len(available())-1] != &avx512 || !cpu.X86.HasAVX512VNNI {
		return nil
	}
	words := avx512F
	words.name = "avx512 without VNNI"
	return []*set{&words}
}
