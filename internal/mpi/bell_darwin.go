//go:build mpi && (amd64 || arm64)

package mpi

import (
	"time"

	"golang.org/x/sys/unix"
)

// waitToRead waits until a file can be read, or for a time, and reports whether it can.
func waitToRead(file int, pause time.Duration) bool {
	var files unix.FdSet
	files.Set(file)
	timeout := unix.NsecToTimeval(int64(pause))
	n, err := unix.Select(file+1, &files, nil, nil, &timeout)
	return err == nil && n > 0
}
