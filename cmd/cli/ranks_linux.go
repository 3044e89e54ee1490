package cli

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// affinity returns the cores that this process may run on, nil if that is not known.
func affinity() []int {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(os.Getpid(), &mask) != nil {
		return nil
	}
	var cores []int
	for core := range 8 * int(unsafe.Sizeof(mask)) {
		if mask.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}
