package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// askForLargePages asks for them for the large pages that lie within x. A system that has none gives small ones.
func askForLargePages(x []float32) {
	const page = 2 << 20
	b := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
	skip := int(-uintptr(unsafe.Pointer(&x[0])) % page)
	if end := skip + (len(b)-skip)/page*page; end > skip {
		_ = unix.Madvise(b[skip:end], unix.MADV_HUGEPAGE)
	}
}
