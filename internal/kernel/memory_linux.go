package kernel

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// askForLargePages asks for them where x lies, from the first's beginning to the last's end: what else lies there is
// the heap's too. A system that has none gives small ones.
func askForLargePages(x []float32) {
	const page = 2 << 20
	first := uintptr(unsafe.Pointer(&x[0])) &^ (page - 1)
	end := (uintptr(unsafe.Pointer(&x[0])) + 4*uintptr(len(x)) + page - 1) &^ (page - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, end-first, unix.MADV_HUGEPAGE)
	runtime.KeepAlive(x)
}
