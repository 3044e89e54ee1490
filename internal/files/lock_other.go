//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package files

import "os"

// nonblocking is the flag of an open that does not wait for another process; here names of files are none of pipes.
const nonblocking = 0

// TryLock returns true: this system has no locks.
func TryLock(*os.File, uint64, bool) (bool, error) { return true, nil }

// names returns 1: this system does not say how many names a file has.
func names(*os.File) int { return 1 }
