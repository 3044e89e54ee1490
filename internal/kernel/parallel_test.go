package kernel

import (
	"runtime"
	"sync"
	"testing"
)

func TestParallelTakesEachTileOnce(t *testing.T) {
	defer SetThreads(0)
	for threads := 1; threads <= 3; threads++ {
		SetThreads(threads)
		for _, n := range []int{0, 1, 7, 8, 9, 100} {
			var lock sync.Mutex
			seen := make([]int, n)
			Parallel(n, 8, func(lo, hi int) {
				lock.Lock()
				defer lock.Unlock()
				if lo%8 != 0 || hi != min(lo+8, n) {
					t.Errorf("of %d: tile %d:%d", n, lo, hi)
				}
				for i := lo; i < hi; i++ {
					seen[i]++
				}
			})
			for i, times := range seen {
				if times != 1 {
					t.Errorf("of %d with %d threads: %d was taken %d times", n, threads, i, times)
				}
			}
		}
	}
}

func TestNoNumberOfThreadsIsTooMany(t *testing.T) {
	defer SetThreads(0)
	SetThreads(1 << 40)
	if n := Threads(); n < 4 || n > 4*runtime.NumCPU() {
		t.Errorf("%d threads are used", n)
	}
	SetThreads(0)
	if got, want := Threads(), runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%d threads are used for all cores, want %d", got, want)
	}
}
