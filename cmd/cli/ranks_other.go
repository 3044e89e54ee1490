//go:build !linux

package cli

func affinity() []int { return nil }
