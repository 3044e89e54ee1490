//go:build darwin || dragonfly || freebsd || linux

package files

import "golang.org/x/sys/unix"

// Free returns how many bytes the file system of a folder has for this user; ok is false where it does not say.
func Free(folder string) (bytes int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil || s.Blocks == 0 { // file systems without a size of their own have 0
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
