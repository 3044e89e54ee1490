//go:build !linux

package kernel

func requestLargePages([]float32) {}
