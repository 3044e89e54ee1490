//go:build !linux && !darwin

package bench

import "runtime"

// CPU returns the processor's architecture.
func CPU() string { return runtime.GOARCH }

// PeakMemory returns 0, for unknown: only Linux and macOS are read.
func PeakMemory() int64 { return 0 }
