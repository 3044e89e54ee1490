package files

import (
	"math"

	"golang.org/x/sys/windows"
)

// Free returns how many bytes the file system of a folder has for this user; ok is false where it does not say.
func Free(folder string) (bytes int64, ok bool) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, math.MaxInt64)), true
}
