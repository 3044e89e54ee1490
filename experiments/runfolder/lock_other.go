//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package runfolder

import "os"

// tryLock returns true: this system has no locks, and trainings are not kept apart.
func tryLock(*os.File, bool) (bool, error) { return true, nil }
