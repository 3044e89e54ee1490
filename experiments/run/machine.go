package run

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Machine measures the free memory of a machine.
type Machine struct {
	Files fs.FS // the machine's root, of Linux; without /proc the memory is unknown
	Local int   // how many processes of a training share the machine; 0: one
}

// ThisMachine returns the machine that the program runs on.
func ThisMachine() Machine { return Machine{Files: os.DirFS("/")} }

// freeMemory returns how many bytes this process can allocate beside others of its training; ok is false where that is
// not known.
func (m Machine) freeMemory() (free int64, ok bool) {
	free, ok = freeMemory(m.Files)
	return free / int64(max(1, m.Local)), ok
}

// freeMemory returns how many bytes this process can allocate without swapping, within the limits of its control
// groups. root is the root of a Linux file system; ok is false for other systems.
func freeMemory(root fs.FS) (free int64, ok bool) {
	if free, ok = figure(root, "proc/meminfo", "MemAvailable:"); !ok {
		return 0, false
	}
	free *= 1 << 10 // "kB" there
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return free, true
	}
	for line := range strings.Lines(string(groups)) { // number:controllers:path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		limits := secondLimits
		if parts[1] != "" {
			limits = firstLimits
		}
		if parts[1] == "" || strings.Contains(","+parts[1]+",", ",memory,") {
			free = limits.free(root, parts[2], free)
		}
	}
	return free, true
}

// groupLimits are the files of a version of control groups with the memory limits of a group.
type groupLimits struct {
	root, limit, used string
	cached            []string // keys of memory.stat: pages of files, which the kernel takes back when it needs them
}

var (
	firstLimits = groupLimits{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}}
	secondLimits = groupLimits{"sys/fs/cgroup", "memory.max", "memory.current",
		[]string{"inactive_file", "active_file"}}
)

// free returns the least of free bytes and what the limits of the group at a path, and of those above it, leave.
func (l groupLimits) free(root fs.FS, at string, free int64) int64 {
	for at = path.Clean("/" + at); ; at = path.Dir(at) {
		folder := path.Join(l.root, at)
		limit, limited := figure(root, path.Join(folder, l.limit), "") // "max" is not a number
		used, known := figure(root, path.Join(folder, l.used), "")
		if limited && known {
			for _, key := range l.cached {
				cached, _ := figure(root, path.Join(folder, "memory.stat"), key)
				used = max(0, used-cached)
			}
			free = max(0, min(free, limit-used))
		}
		if at == "/" {
			return free
		}
	}
}

// figure reads the whole number after a key at the start of a line of a file.
func figure(root fs.FS, name, key string) (n int64, ok bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if key != "" && len(fields) > 0 && fields[0] == key {
			fields = fields[1:]
		} else if key != "" {
			continue
		}
		if len(fields) == 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		return n, err == nil
	}
	return 0, false
}
