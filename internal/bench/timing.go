package bench

import (
	"time"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Timing is the time of a computation, and the rate of a loop that is limited only by a peak of the machine, measured
// in alternation. Both had the same other load, so on a shared machine their quotient is more reliable than either.
type Timing struct {
	Best, Mean time.Duration
	Peak       kernel.Rate // zero where the kernels have no such loop
}

// PeakFraction returns the fraction of the peak that so many operations, or bytes, in the mean time are; 0 where the
// peak is unknown.
func (t Timing) PeakFraction(done float64) float64 {
	if t.Peak.Time == 0 {
		return 0
	}
	return done / t.Mean.Seconds() / t.Peak.Mean()
}

// The loop runs 1/peakFraction as long as the measured computation before it, and at most peakLongest.
const (
	peakFraction = 4
	peakLongest  = 200 * time.Millisecond
)

// beside runs do and then loop, adds the loop's rate to peak, and returns do's time.
func beside(loop kernel.Loop, peak *kernel.Rate, do func() error) (time.Duration, error) {
	start := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if loop != nil {
		peak.Add(loop(min(took/peakFraction, peakLongest)))
	}
	return took, nil
}

// A short computation is measured for at least shortTime and shortTimes times, and for turn before the loop runs.
const (
	shortTime  = 300 * time.Millisecond
	shortTimes = 5
	turn       = 10 * time.Millisecond
)

// timing measures do repeatedly, in alternation with loop.
func timing(loop kernel.Loop, do func()) Timing {
	var t Timing
	var all time.Duration
	times := 0
	for times < shortTimes || all < shortTime {
		took, _ := beside(loop, &t.Peak, func() error {
			for begin, now := time.Now(), time.Now(); now.Sub(begin) < turn; times++ {
				start := now
				do()
				now = time.Now()
				if took := max(1, now.Sub(start)); times == 0 || took < t.Best { // a clock may be too coarse
					t.Best = took
				}
			}
			return nil
		})
		all += took
	}
	t.Mean = all / time.Duration(times)
	return t
}
