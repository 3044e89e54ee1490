package kernel

import (
	"sync/atomic"
	"time"
)

// Rate is how much was done in a time: operations, or bytes.
type Rate struct {
	Done float64
	Time time.Duration
	Best float64 // a second, in the fastest round
}

// Mean is how much was done a second, 0 of nothing.
func (r Rate) Mean() float64 {
	if r.Time == 0 {
		return 0
	}
	return r.Done / r.Time.Seconds()
}

// Add adds what was done at another time.
func (r *Rate) Add(more Rate) {
	r.Done, r.Time, r.Best = r.Done+more.Done, r.Time+more.Time, max(r.Best, more.Best)
}

// Loop runs one computation at the machine's full speed, on all threads, for a time and at least once.
type Loop func(time.Duration) Rate

// MultiplyAdds is a loop of nothing but fused multiply-adds of float32 in registers, which counts two operations each:
// the most that any product can reach. It is nil for the plain version, which has no such loop.
func MultiplyAdds() Loop { return multiplyAdds(use.multiplyAdds, use.roundFlops) }

// BFloat16MultiplyAdds is MultiplyAdds of bfloat16, nil where CheckBFloat16 returns an error.
func BFloat16MultiplyAdds() Loop { return multiplyAdds(use.pairMultiplyAdds, 2*use.roundFlops) }

// multiplyAdds is a loop of rounds that have so many operations. The threads do not wait for each other.
func multiplyAdds(rounds func(times int), flops int) Loop {
	if rounds == nil {
		return nil
	}
	const window, times = 4 * time.Millisecond, 1 << 14
	return func(d time.Duration) Rate {
		return repeat(d, func() float64 {
			var done atomic.Int64
			start := time.Now()
			Parallel(Threads(), 1, func(int, int) {
				for time.Since(start) < window {
					rounds(times)
					done.Add(times)
				}
			})
			return float64(done.Load()) * float64(flops)
		})
	}
}

// MemoryReads is a loop that reads 256 MiB, which no cache holds, and counts bytes. It is nil for the plain version.
func MemoryReads() Loop {
	if use.readAll == nil {
		return nil
	}
	x := make([]float32, 1<<26)
	for i := range x {
		x[i] = 1 // or all pages would be one page of zeros
	}
	return func(d time.Duration) Rate {
		return repeat(d, func() float64 {
			Parallel(len(x), 1<<18, func(lo, hi int) { use.readAll(x[lo:hi]) })
			return float64(4 * len(x))
		})
	}
}

// repeat calls round, which returns how much it does, for a time and at least once.
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
