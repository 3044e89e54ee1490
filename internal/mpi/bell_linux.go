//go:build mpi && (amd64 || arm64)

package mpi

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitToRead waits until a file can be read, or for a time, and reports whether it can. The scheduler of Go does not
// know of the call: its monitor would look for such calls every 20 microseconds, which costs kernels more than a
// processor that this thread keeps. All pauses are short.
func waitToRead(file int, pause time.Duration) bool {
	files := unix.PollFd{Fd: int32(file), Events: unix.POLLIN}
	timeout := unix.NsecToTimespec(int64(pause))
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files)), 1,
		uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	return err == 0 && n > 0
}
