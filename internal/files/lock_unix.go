//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nonblocking is the flag of an open that does not wait for another process.
const nonblocking = unix.O_NONBLOCK

// TryLock locks a file, for this process alone or with others, and reports whether it could. Closing the file unlocks
// it. On Windows, which locks ranges, the one byte at an offset is locked, and cannot be read by others. On a file
// system without locks TryLock returns true.
func TryLock(file *os.File, _ uint64, alone bool) (bool, error) {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	switch err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, os.NewSyscallError("flock", err)
	}
}

// names returns how many names, hard links, a file has.
func names(file *os.File) int {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return 1
	}
	return int(s.Nlink)
}
