//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package runfolder

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file, for this process alone or with others, and reports whether it could. Closing the file unlocks
// it. On a file system without locks it returns true: trainings there are not kept apart.
func tryLock(file *os.File, alone bool) (bool, error) {
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
