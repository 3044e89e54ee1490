// Package calibration fits probabilities to what came true on held-out examples, and measures how well they do: the
// temperature of a softmax, the slope and offset of a sigmoid, thresholds of decisions, conformal sets. It knows no
// model: an example is its logits.
package calibration

import (
	"math"
	"slices"
)

// Example is what a head computes for an example, and what is right.
type Example struct {
	Logits [][]float32 // [windows][labels]; the probabilities are the mean over windows
	Gold   []int       // numbers of the labels that hold; below 0: one that the head does not know
}

// Bounds of a temperature: where all examples are right, the likelihood grows without end as the temperature falls.
const (
	LeastTemperature = 0.1
	MostTemperature  = 10
)

// Temperature returns the T that minimises the mean of -log p(gold), p the mean over windows of softmax(z/T) (Guo et
// al. 2017, "On Calibration of Modern Neural Networks"), within its bounds. With one window for each example the mean
// is convex in 1/T; with several it need not be, so that the search begins on a grid. Examples whose label is not known
// do not count; 1 without any other.
func Temperature(examples []Example) float64 {
	examples = slices.DeleteFunc(slices.Clone(examples), func(e Example) bool {
		return len(e.Gold) != 1 || e.Gold[0] < 0
	})
	if len(examples) == 0 {
		return 1
	}
	const grid = 24
	low, high := math.Log(LeastTemperature), math.Log(MostTemperature)
	step := (high - low) / grid
	loss := func(logT float64) float64 { return softmaxLoss(examples, math.Exp(-logT)) }
	best, bestLoss := 0.0, math.Inf(1)
	for i := range grid + 1 {
		if at := low + step*float64(i); loss(at) < bestLoss {
			best, bestLoss = at, loss(at)
		}
	}
	best = minimum(loss, max(low, best-step), min(high, best+step))
	return min(max(math.Exp(best), LeastTemperature), MostTemperature)
}

// softmaxLoss returns the mean of -log of the mean over windows of softmax(beta·z)[gold].
func softmaxLoss(examples []Example, beta float64) float64 {
	sum := 0.0
	for _, e := range examples {
		p := 0.0
		for _, z := range e.Logits {
			p += math.Exp(logSoftmax(z, e.Gold[0], beta)) / float64(len(e.Logits))
		}
		if len(e.Logits) == 1 { // the logarithm itself, where its exponential would be 0
			sum -= logSoftmax(e.Logits[0], e.Gold[0], beta)
			continue
		}
		sum -= math.Log(max(p, math.SmallestNonzeroFloat64))
	}
	return sum / float64(len(examples))
}

// logSoftmax returns the logarithm of softmax(beta·z)[c].
func logSoftmax(z []float32, c int, beta float64) float64 {
	largest := beta * float64(slices.Max(z))
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(beta*float64(v) - largest)
	}
	return beta*float64(z[c]) - largest - math.Log(sum)
}

// minimum returns where a function of one minimum in [low, high] has it, by golden sections.
func minimum(f func(float64) float64, low, high float64) float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for high-low > 1e-9 {
		if fa <= fb {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + ratio*(high-low)
			fb = f(b)
		}
	}
	return (low + high) / 2
}
