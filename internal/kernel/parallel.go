package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var threads atomic.Int64

// SetThreads sets how many goroutines share the work, and the program's GOMAXPROCS: all cores for 0 or less. No result
// depends on it. Where n is many times the cores, fewer are used: the runtime would be busy with them alone.
func SetThreads(n int) {
	n = max(0, min(n, 4*runtime.NumCPU()))
	threads.Store(int64(n))
	if n == 0 {
		runtime.SetDefaultGOMAXPROCS()
		return
	}
	runtime.GOMAXPROCS(n)
}

// Threads returns how many goroutines share the work.
func Threads() int {
	if n := int(threads.Load()); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Parallel calls do for tiles lo:hi of size tile, 1 or more (the last may be smaller), that together are 0:n, and
// waits. Several goroutines call it at once. It may call Parallel, whose tiles then run one by one.
func Parallel(n, tile int, do func(lo, hi int)) { parallel.run(n, tile, do) }

var parallel = tiled(func(do *func(lo, hi int), lo, hi int) { (*do)(lo, hi) })

// tiling is a kind of work that goroutines share tile by tile. Its calls allocate nothing once there have been as many
// at a time as ever: what a loop works on stands in T and not in a closure.
type tiling[T any] struct {
	do    func(args *T, lo, hi int)
	calls sync.Pool // of *tiledCall[T]
}

// tiled makes a tiling of a loop over lo:hi.
func tiled[T any](do func(args *T, lo, hi int)) *tiling[T] {
	t := &tiling[T]{do: do}
	t.calls.New = func() any { return &tiledCall[T]{tiling: t} }
	return t
}

// run does the loop for tiles of 0:n, and waits.
func (t *tiling[T]) run(n, tile int, args T) {
	if n <= 0 {
		return
	}
	c := t.calls.Get().(*tiledCall[T])
	c.args, c.n, c.tile = args, n, tile
	workers.share(c, (n+tile-1)/tile)
	clear1(&c.args)
	t.calls.Put(c)
}

// clear1 forgets what x points to.
func clear1[T any](x *T) {
	var zero T
	*x = zero
}

// tiledCall is one run of a tiling.
type tiledCall[T any] struct {
	tiling  *tiling[T]
	args    T
	n, tile int
}

func (c *tiledCall[T]) work(i int) {
	lo := i * c.tile
	c.tiling.do(&c.args, lo, min(lo+c.tile, c.n))
}
