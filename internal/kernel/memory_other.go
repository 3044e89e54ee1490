//go:build !linux

package kernel

func askForLargePages([]float32) {}
