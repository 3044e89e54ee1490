package kernel

import (
	"math"
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

// job is work in pieces that may run in any order and concurrently.
type job interface{ work(piece int) }

var cores = runtime.NumCPU()

// workers is the pool of goroutines for all jobs. They never end: starting one takes as long as multiplying a small
// matrix.
var workers pool

// pool runs one job at a time. A job that is shared while another runs, or from inside a job, runs on its caller's
// goroutine alone. Each goroutine has a range of the pieces, and begins with its first: pieces after each other are
// beside each other in memory, and jobs that divide the same rows give a goroutine the same ones. When none is left it
// takes the last ones of the others' ranges.
type pool struct {
	owner   sync.Mutex // locked while a job runs
	workers []*signal  // the start signal of each goroutine

	job        job
	ranges     [mostGoroutines]pieceRange // unstarted pieces: of share's goroutine, and of each worker
	used       atomic.Int64               // ranges of the job
	unfinished atomic.Int64               // pieces
	finished   signal                     // sent by the worker that finishes the last piece
}

// mostGoroutines is the most goroutines that run a job.
const mostGoroutines = 1024

// share runs the pieces 0:pieces of a job on this goroutine and up to Threads()-1 workers, and waits for the last
// piece. It does not wait for a worker that starts after all pieces have.
func (p *pool) share(j job, pieces int) {
	goroutines := min(Threads(), pieces, mostGoroutines)
	if goroutines <= 1 || !p.owner.TryLock() {
		for i := range pieces {
			j.work(i)
		}
		return
	}
	if p.finished.wake == nil {
		p.finished.init()
	}
	for len(p.workers) < goroutines-1 {
		start := new(signal)
		start.init()
		p.workers = append(p.workers, start)
		go p.help(start, len(p.workers))
	}
	// All ranges are empty: the job before is done. A worker that starts late for it takes pieces of this one.
	p.job = j
	p.unfinished.Store(int64(pieces))
	p.used.Store(int64(goroutines))
	for i := range goroutines {
		p.ranges[i].set(i*pieces/goroutines, (i+1)*pieces/goroutines) // from here on workers start pieces
	}
	for _, start := range p.workers[:goroutines-1] {
		start.send()
	}
	if !p.run(0) {
		p.finished.wait()
	}
	p.job = nil
	p.owner.Unlock() // not deferred: after a panic workers may still be running, so the pool runs no other job
}

// help is the loop of a worker, which has range own.
func (p *pool) help(start *signal, own int) {
	for {
		start.wait()
		if p.run(own) {
			p.finished.send()
		}
	}
}

// run runs pieces until all have been started, and reports whether it finished the last one.
func (p *pool) run(own int) (last bool) {
	for {
		piece, ok := p.next(own)
		if !ok {
			return last
		}
		// The job does not change while a piece of it is unfinished.
		p.job.work(piece)
		last = p.unfinished.Add(-1) == 0
	}
}

// next takes the first piece of range own, or, where it is empty, the last one of another.
func (p *pool) next(own int) (piece int, ok bool) {
	if piece, ok = p.ranges[own].first(); ok {
		return piece, true
	}
	used := int(p.used.Load()) // of a job with fewer goroutines, own may not be among them
	for i := range used {
		if piece, ok = p.ranges[(own+i)%used].last(); ok {
			return piece, true
		}
	}
	return 0, false
}

// pieceRange is a range of pieces: its begin in the upper 32 bits, its end in the lower ones.
type pieceRange struct {
	_      [7]uint64 // no other field is in the cache line of bounds
	bounds atomic.Uint64
}

func (r *pieceRange) set(begin, end int) { r.bounds.Store(uint64(begin)<<32 | uint64(end)) }

// first takes the first piece; ok is false if there is none.
func (r *pieceRange) first() (piece int, ok bool) {
	for {
		bounds := r.bounds.Load()
		begin, end := bounds>>32, bounds&math.MaxUint32
		if begin >= end {
			return 0, false
		}
		if r.bounds.CompareAndSwap(bounds, (begin+1)<<32|end) {
			return int(begin), true
		}
	}
}

// last takes the last piece; ok is false if there is none.
func (r *pieceRange) last() (piece int, ok bool) {
	for {
		bounds := r.bounds.Load()
		begin, end := bounds>>32, bounds&math.MaxUint32
		if begin >= end {
			return 0, false
		}
		if r.bounds.CompareAndSwap(bounds, begin<<32|(end-1)) {
			return int(end - 1), true
		}
	}
}

// signal is sent by one goroutine to another, which spins before it blocks: the next product of an encoder follows
// within microseconds, and waking a goroutine takes about as long.
type signal struct {
	sent   atomic.Bool
	asleep atomic.Bool
	wake   chan struct{}
}

func (s *signal) init() { s.wake = make(chan struct{}, 1) }

// Rounds of pauses that a goroutine spins before it blocks: some 0.3 ms, since waking it takes about as long on a
// virtual machine. With more goroutines than cores, spinning would take the core from a goroutine that has work.
const spins, spinsWithoutCores = 2000, 20

// send sends the signal. Sent twice before it is received, it is received once.
func (s *signal) send() {
	s.sent.Store(true)
	if s.asleep.Swap(false) {
		s.wake <- struct{}{}
	}
}

// wait receives the signal: it returns once it has been sent.
func (s *signal) wait() {
	rounds := spins
	if Threads() > cores {
		rounds = spinsWithoutCores
	}
	for {
		for range rounds {
			if s.sent.CompareAndSwap(true, false) {
				return
			}
			pause()
		}
		s.asleep.Store(true)
		if s.sent.Load() && s.asleep.Swap(false) {
			s.sent.Store(false)
			return
		}
		<-s.wake
		if s.sent.CompareAndSwap(true, false) {
			return
		}
		// It was woken by the end of a send whose signal had been received before.
	}
}
