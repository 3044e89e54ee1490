//go:build !amd64 && !arm64

package kernel

// lesserSets lists sets that this processor would have with fewer instructions.
func lesserSets() []*set { return nil }
