//go:build !linux

package cli

// affinity returns the cores that this process may run on, nil if that is not known.
func affinity() []int { return nil }
