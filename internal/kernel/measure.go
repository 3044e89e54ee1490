package kernel

import (
	"sync/atomic"
	"time"
)

// Rate is an amount, of operations or bytes, and the time it took.
type Rate struct {
	Done float64
	Time time.Duration
	Best float64 // amount a second of the fastest round
}

// Mean returns the amount a second, 0 of a zero Rate.
func (r Rate) Mean() float64 {
	if r.Time == 0 {
		return 0
	}
	return r.Done / r.Time.Seconds()
}

// Add adds the amount and time of another measurement.
func (r *Rate) Add(more Rate) {
	r.Done, r.Time, r.Best = r.Done+more.Done, r.Time+more.Time, max(r.Best, more.Best)
}

// Loop repeats one computation at full speed on all threads, for a time and at least once.
type Loop func(time.Duration) Rate

// MultiplyAdds is a loop of only multiply-adds in registers, of two operations each: the upper bound of a product's
// speed in a precision. It is nil where there is no such loop, as in the plain version and where Check returns an
// error. The threads are not synchronised.
func MultiplyAdds(precision Precision) Loop {
	t := &use.tiles[precision]
	if t.inGo() {
		return nil
	}
	const window, times = 4 * time.Millisecond, 1 << 14
	return func(d time.Duration) Rate {
		return repeat(d, func() float64 {
			var done atomic.Int64
			start := time.Now()
			Parallel(Threads(), 1, func(int, int) {
				for time.Since(start) < window {
					t.multiplyAdds(times)
					done.Add(times)
				}
			})
			return float64(done.Load()) * float64(t.operations)
		})
	}
}

// MemoryReads is a loop that reads 256 MiB, more than the caches, and counts bytes. It is nil for the plain version.
func MemoryReads() Loop {
	if use.readAll == nil {
		return nil
	}
	x := make([]float32, 1<<26)
	for i := range x {
		x[i] = 1 // else all pages would be the same page of zeros
	}
	return func(d time.Duration) Rate {
		return repeat(d, func() float64 {
			Parallel(len(x), 1<<18, func(lo, hi int) { use.readAll(x[lo:hi]) })
			return float64(4 * len(x))
		})
	}
}

// repeat calls round, which returns the amount it did, for a time and at least once.
func repeat(d time.Duration, round func() float64) Rate {
	var all Rate
	for all.Time < d || all.Time == 0 {
		start := time.Now()
		done := round()
		took := max(1, time.Since(start))
		all.Add(Rate{done, took, done / took.Seconds()})
	}
	return all
}
