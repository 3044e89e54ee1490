package cli

import (
	"runtime"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

func TestProcessesThatShareCoresDivideThem(t *testing.T) {
	t.Cleanup(func() { kernel.SetThreads(0) })
	for _, test := range []struct{ threads, sharing, want int }{
		{0, 1, 8}, {0, 2, 4}, {0, 3, 2}, {0, 16, 1},
		{3, 1, 3}, {3, 2, 3}, // --threads is that of each process
	} {
		kernel.SetThreads(test.threads)
		if test.threads == 0 {
			runtime.GOMAXPROCS(8)
		}
		divideCores(test.threads, test.sharing)
		if got := kernel.Threads(); got != test.want {
			t.Errorf("--threads %d, 8 cores of %d processes: %d threads, want %d", test.threads, test.sharing, got,
				test.want)
		}
		if got := runtime.GOMAXPROCS(0); got < test.want+forMessages {
			t.Errorf("--threads %d, 8 cores of %d processes: GOMAXPROCS %d leaves none for messages", test.threads,
				test.sharing, got)
		}
	}
}

func TestPinnedProcessesShareNoCores(t *testing.T) {
	all := []place{
		{"a", []int{0, 1, 2, 3}}, {"a", []int{4, 5, 6, 7}}, {"a", []int{3}}, {"a", nil},
		{"b", []int{0, 1, 2, 3}}, {"b", nil},
	}
	want := [][]int{{0, 2, 3}, {1, 3}, {0, 2, 3}, {0, 1, 2, 3}, {4, 5}, {4, 5}}
	var texts [][]byte
	for _, p := range all {
		texts = append(texts, p.encode())
	}
	decoded, err := decodePlaces(texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		var sharing []int
		for j, other := range decoded {
			if p.sharesCores(other) {
				sharing = append(sharing, j)
			}
		}
		if !slices.Equal(sharing, want[i]) {
			t.Errorf("%v shares cores with places %v, want %v", p, sharing, want[i])
		}
	}
	if _, err := decodePlaces([][]byte{[]byte("a machine")}); err == nil {
		t.Error("a text that is none of a place is no error")
	}
	if own := here(); runtime.GOOS == "linux" && (len(own.Cores) == 0 || len(own.Cores) != runtime.NumCPU()) {
		t.Errorf("the cores of this process are %v; want %d", own.Cores, runtime.NumCPU())
	}
}
