//go:build !darwin

package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// CPU returns the processor's name, or its architecture where the system does not report the name.
func CPU() string {
	if name := field("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return runtime.GOARCH
}

// PeakMemory returns the peak memory of this process so far, in bytes, 0 where the system does not report it, as only
// Linux and macOS do. It is the process's own peak: getrusage's includes that of the process it was forked from.
func PeakMemory() int64 {
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/self/status", "VmHWM"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// field returns the value of the first line "key: value" of a file, "" where there is none.
func field(file, key string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
