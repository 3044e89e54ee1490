package kernel

import "golang.org/x/sys/cpu"

// lesserSets lists sets that this processor would have with fewer instructions.
func lesserSets() []*set {
	if !cpu.ARM64.HasASIMDDP {
		return nil
	}
	words := neonWords
	words.name = "neon without DotProd"
	return []*set{&words}
}
