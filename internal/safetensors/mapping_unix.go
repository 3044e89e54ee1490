//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package safetensors

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f, at least one.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
}

func unmapFile(mapped []byte) error { return unix.Munmap(mapped) }
