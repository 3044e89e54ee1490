package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var threads atomic.Int64

// SetThreads sets the number of goroutines that share the work, and the program's GOMAXPROCS: all cores for 0 or less.
// No result depends on it. It is limited to four times the cores, since scheduling more would take most of the time.
func SetThreads(n int) {
	n = max(0, min(n, 4*runtime.NumCPU()))
	threads.Store(int64(n))
	if n == 0 {
		runtime.SetDefaultGOMAXPROCS()
		return
	}
	runtime.GOMAXPROCS(n)
}

// Threads returns the number of goroutines that share the work.
func Threads() int {
	if n := int(threads.Load()); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Parallel calls do for all tiles lo:hi of 0:n, of size tile, at least 1 (the last may be smaller), and waits. Several
// goroutines call do at once. do may call Parallel, whose tiles then run one by one.
func Parallel(n, tile int, do func(lo, hi int)) { parallel.run(n, tile, do) }

var parallel = tiled(func(do *func(lo, hi int), lo, hi int) { (*do)(lo, hi) })

// tiling is a loop that goroutines share tile by tile. A call reuses the memory of earlier ones and does not allocate:
// the loop's arguments are in T, not in a closure.
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

// run runs the loop for the tiles of 0:n, and waits.
func (t *tiling[T]) run(n, tile int, args T) {
	if n <= 0 {
		return
	}
	c := t.calls.Get().(*tiledCall[T])
	c.args, c.n, c.tile = args, n, tile
	workers.share(c, (n+tile-1)/tile)
	clearValue(&c.args)
	t.calls.Put(c)
}

// clearValue sets x to its zero value, so that the pool keeps no reference to the arguments.
func clearValue[T any](x *T) {
	var zero T
	*x = zero
}

// tiledCall is one call of a tiling.
type tiledCall[T any] struct {
	tiling  *tiling[T]
	args    T
	n, tile int
}

func (c *tiledCall[T]) work(i int) {
	lo := i * c.tile
	c.tiling.do(&c.args, lo, min(lo+c.tile, c.n))
}
