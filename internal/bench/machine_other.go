//go:build !linux && !darwin

package bench

import "runtime"

// CPU returns the processor's architecture.
func CPU() string { return runtime.GOARCH }

// PeakMemory returns 0: it is not implemented for this system.
func PeakMemory() int64 { return 0 }
