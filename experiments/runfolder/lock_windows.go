package runfolder

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is the offset of the one byte that is locked, beyond the file's end: a locked part cannot be read by
// others.
const lockedByte = 1 << 62

// tryLock locks a file, for this process alone or with others, and reports whether it could. Closing the file unlocks
// it. On a file system without locks it returns true: trainings there are not kept apart.
func tryLock(file *os.File, alone bool) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := &windows.Overlapped{OffsetHigh: lockedByte >> 32}
	switch err := windows.LockFileEx(windows.Handle(file.Fd()), how, 0, 1, 0, at); {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	default:
		return false, os.NewSyscallError("LockFileEx", err)
	}
}
