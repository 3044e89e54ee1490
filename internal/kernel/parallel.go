package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var threads atomic.Int64

// SetThreads sets how many goroutines share the work: all cores for 0. No result depends on it. Where n is many times
// the cores, fewer are used: the runtime would be busy with them alone.
func SetThreads(n int) {
	n = min(n, 4*runtime.NumCPU())
	threads.Store(int64(n))
	if n == 0 {
		runtime.SetDefaultGOMAXPROCS()
		return
	}
	runtime.GOMAXPROCS(n) // what runs on gonum's BLAS follows it
}

// Threads returns how many goroutines share the work.
func Threads() int {
	if n := int(threads.Load()); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Parallel calls do for tiles lo:hi of size tile (the last may be smaller) that together are 0:n, and waits.
func Parallel(n, tile int, do func(lo, hi int)) {
	tiles := (n + tile - 1) / tile
	workers := min(Threads(), tiles)
	if workers <= 1 {
		for lo := 0; lo < n; lo += tile {
			do(lo, min(lo+tile, n))
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				t := int(next.Add(1)) - 1
				if t >= tiles {
					return
				}
				do(t*tile, min(t*tile+tile, n))
			}
		})
	}
	wg.Wait()
}
