package kernel

import "time"

// PeakFlops measures how many float32 operations a second all threads reach together in a loop of nothing but fused
// multiply-adds in registers: the most that any product can reach. It is 0 for the plain version, which has no such loop.
func PeakFlops(d time.Duration) float64 { return peakFlops(d, use.multiplyAdds, use.roundFlops) }

// PeakBFloat16Flops is PeakFlops of bfloat16, 0 where CheckBFloat16 returns an error.
func PeakBFloat16Flops(d time.Duration) float64 {
	return peakFlops(d, use.pairMultiplyAdds, 2*use.roundFlops)
}

// peakFlops measures a loop of rounds that have so many operations.
func peakFlops(d time.Duration, rounds func(times int), flops int) float64 {
	if rounds == nil {
		return 0
	}
	const times = 1 << 18 // a millisecond or two, beside which starting does not count
	best := 0.0
	for begin := time.Now(); time.Since(begin) < d; {
		start := time.Now()
		Parallel(Threads(), 1, func(int, int) { rounds(times) })
		best = max(best, float64(times*flops*Threads())/time.Since(start).Seconds())
	}
	return best
}

// Bandwidth measures how many bytes a second all threads together read of memory that no cache holds. It is 0 for the
// plain version.
func Bandwidth(d time.Duration) float64 {
	if use.readAll == nil {
		return 0
	}
	x := make([]float32, 1<<26) // 256 MiB
	for i := range x {
		x[i] = 1 // or all pages would be one page of zeros
	}
	best := 0.0
	for begin := time.Now(); time.Since(begin) < d; {
		start := time.Now()
		Parallel(len(x), 1<<18, func(lo, hi int) { use.readAll(x[lo:hi]) })
		best = max(best, float64(4*len(x))/time.Since(start).Seconds())
	}
	return best
}
