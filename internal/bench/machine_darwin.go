package bench

import (
	"runtime"
	"syscall"
)

// CPU returns the processor's name, or its architecture where the system does not report the name.
func CPU() string {
	if name, err := syscall.Sysctl("machdep.cpu.brand_string"); err == nil && name != "" {
		return name
	}
	return runtime.GOARCH
}

// PeakMemory returns the peak memory of this process so far, in bytes, 0 where the system does not report it.
func PeakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss
}
