package memory

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
)

// machine returns the file system of a machine with the given files.
func machine(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestFreeMemory(t *testing.T) {
	const meminfo = "MemTotal:        8000 kB\nMemFree:          100 kB\nMemAvailable:    4000 kB\n"
	const free = 4000 << 10
	tests := []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"another system", nil, 0, false},
		{"no control groups", map[string]string{"proc/meminfo": meminfo}, free, true},
		{"a group without a limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "1000\n",
		}, free, true},
		{"a group with a limit, with reclaimable pages of files", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "3000000\n", "sys/fs/cgroup/memory.current": "2000000\n",
			"sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 300000\nactive_file 50000\n",
		}, 3000000 - 2000000 + 350000, true},
		{"the group above has the limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "10\n",
			"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "400\n",
		}, 600, true},
		{"more is used than allowed", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "1400\n",
		}, 0, true},
		{"groups of the first version", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "7:cpu,cpuacct:/x\n4:memory:/not/seen/from/within\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "900000\n",
			"sys/fs/cgroup/memory/memory.stat":           "inactive_file 7\ntotal_inactive_file 500000\n",
		}, 600000, true},
		{"files without values", map[string]string{"proc/meminfo": "MemAvailable:\n"}, 0, false},
		{"a group's files without values", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::\nx\n\n0::/../..\n", "sys/fs/cgroup/memory.max": "",
			"sys/fs/cgroup/memory.current": "\n",
		}, free, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := freeMemory(machine(test.files)); got != test.want || ok != test.ok {
				t.Errorf("freeMemory = %d, %v, want %d, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestFreeMemoryOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("free memory is only read on Linux")
	}
	if free, ok := freeMemory(os.DirFS("/")); !ok || free < 1<<20 {
		t.Errorf("freeMemory = %d, %v, which this test could not run in", free, ok)
	}
}

func TestSizesAreWrittenWithThreeDigits(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "0.98 KiB", 1 << 10: "1.00 KiB", 1<<20 - 1: "1.00 MiB", 14 << 30: "14.0 GiB",
		700 << 30: "700 GiB", 1<<63 - 1: "8.00 EiB",
	} {
		if got := Size(bytes); got != want {
			t.Errorf("Size(%d) = %s, want %s", bytes, got, want)
		}
	}
}
