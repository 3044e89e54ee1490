package kernel

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// requestLargePages requests large pages for the memory of x, rounded to whole pages: the rest of them is memory of the
// heap too. A system without large pages uses small ones.
func requestLargePages(x []float32) {
	const page = 2 << 20
	first := uintptr(unsafe.Pointer(&x[0])) &^ (page - 1)
	end := (uintptr(unsafe.Pointer(&x[0])) + 4*uintptr(len(x)) + page - 1) &^ (page - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, end-first, unix.MADV_HUGEPAGE)
	runtime.KeepAlive(x)
}
