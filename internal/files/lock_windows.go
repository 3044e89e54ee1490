package files

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// nonblocking is the flag of an open that does not wait for another process; here names of files are none of pipes.
const nonblocking = 0

// TryLock locks a file, for this process alone or with others, and reports whether it could. Closing the file unlocks
// it. On Windows, which locks ranges, the one byte at an offset is locked, and cannot be read by others. On a file
// system without locks TryLock returns true.
func TryLock(file *os.File, offset uint64, alone bool) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
	switch err := windows.LockFileEx(windows.Handle(file.Fd()), how, 0, 1, 0, at); {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	default:
		return false, os.NewSyscallError("LockFileEx", err)
	}
}

// names returns how many names, hard links, a file has.
func names(file *os.File) int {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(file.Fd()), &info); err != nil {
		return 1
	}
	return int(info.NumberOfLinks)
}
