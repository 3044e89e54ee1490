package bench

import (
	"time"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Timing is how long something takes, and what a loop that only a peak of the machine limits reached in alternation
// with it: both met the same neighbours, so on a shared machine their quotient says more than either.
type Timing struct {
	Best, Mean time.Duration
	Peak       kernel.Rate // zero where the kernels have no such loop
}

// Share is what part of the peak so many operations, or bytes, in the mean time are; 0 where the peak is not known.
func (t Timing) Share(done float64) float64 {
	if t.Peak.Time == 0 {
		return 0
	}
	return done / t.Mean.Seconds() / t.Peak.Mean()
}

// peakShare is how much shorter than what is measured the loop runs after it, peakLongest how long at most.
const (
	peakShare   = 4
	peakLongest = 200 * time.Millisecond
)

// beside runs do, and then loop, whose rate it adds to peak. It returns do's time.
func beside(loop kernel.Loop, peak *kernel.Rate, do func() error) (time.Duration, error) {
	start := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if loop != nil {
		peak.Add(loop(min(took/peakShare, peakLongest)))
	}
	return took, nil
}

// Something short is measured so long, and so often at least; so long at a time before the loop has its turn.
const (
	shortTime  = 300 * time.Millisecond
	shortTimes = 5
	turn       = 10 * time.Millisecond
)

// timing measures do again and again beside loop.
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
