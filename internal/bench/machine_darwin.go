package bench

import (
	"runtime"
	"syscall"
)

// CPU returns the processor's name, its architecture where the system does not tell.
func CPU() string {
	if name, err := syscall.Sysctl("machdep.cpu.brand_string"); err == nil && name != "" {
		return name
	}
	return runtime.GOARCH
}

// PeakMemory returns the most bytes of memory that this process has held so far, 0 where the system does not tell.
func PeakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss
}
