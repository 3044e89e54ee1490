package events

import (
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// lossAt is the step of a rate with the losses of two heads; a negative one is that of a head without a batch.
func lossAt(rate, a, b float64) train.Step {
	s := train.Step{Rate: rate, Loss: 1e3} // the weighted one that is minimised is not used
	for i, loss := range []float64{a, b} {
		l := multitask.Loss{Task: "t", Head: string(rune('a' + i)), Weight: float64(i + 1)}
		if loss >= 0 {
			l.Units, l.Sum = 2, 2*loss
		}
		s.Losses = append(s.Losses, l)
	}
	return s
}

func TestRateCurveSmoothsEachHeadsLoss(t *testing.T) {
	var c RateCurve
	c.Add(lossAt(1, 4, -1))
	c.Add(lossAt(2, -1, 3))
	c.Add(lossAt(3, 2, -1))
	// With a decay of 0.9, corrected for the start: (0.9·0.1·4 + 0.1·2) / (1 - 0.9²) is the second mean of head a.
	second := (0.9*0.1*4 + 0.1*2) / (1 - 0.81)
	for i, want := range []RatePoint{{1, 1, 4, 4 + 2*3}, {2, 2, 2 * 3, 4 + 2*3}, {3, 3, 2, second + 2*3}} {
		got := c.Points[i]
		if got.Step != want.Step || got.Rate != want.Rate || got.Loss != want.Loss ||
			!(math.Abs(got.Smoothed-want.Smoothed) <= 1e-12) {
			t.Errorf("point %d is %+v, want %+v", i, got, want)
		}
	}
}

// The smoothed losses are those that their definition gives at each step, however many heads begin late.
func TestRateCurveOfHeadsThatBeginLate(t *testing.T) {
	var c RateCurve
	var means [2][]float64 // by head, of each step from its first loss
	starts := [2]int{1, 4}
	for i := range 12 {
		losses := [2]float64{-1, -1}
		for h, start := range starts {
			if i >= start && (i-start)%2 == 0 {
				losses[h] = float64(1 + (i*7+h*3)%5)
			}
		}
		c.Add(lossAt(float64(i+1), losses[0], losses[1]))
		for h, start := range starts {
			if i < start {
				continue
			}
			if losses[h] < 0 {
				means[h] = append(means[h], means[h][i-start-1])
				continue
			}
			// Σ_j 0.9^(n-j)·0.1·loss_j / (1 - 0.9^n) over the n losses so far
			sum, n := 0.0, 0
			for at := start; at <= i; at += 2 {
				sum, n = 0.9*sum+0.1*float64(1+(at*7+h*3)%5), n+1
			}
			means[h] = append(means[h], sum/(1-math.Pow(0.9, float64(n))))
		}
		for at, p := range c.Points {
			want := 0.0
			for h, start := range starts {
				if len(means[h]) > 0 {
					want += float64(h+1) * means[h][max(0, at-start)]
				}
			}
			if !(math.Abs(p.Smoothed-want) <= 1e-12) {
				t.Fatalf("after step %d: point %d is %v, want %v", i, at, p.Smoothed, want)
			}
		}
	}
}

// valley is a curve of losses that fall by the logarithm of the rate to 1e-2, and rise from there until they diverge.
func valley() (c RateCurve) {
	for rate := 1e-6; rate < 1e3 && !c.Diverged; rate *= 1.1 {
		c.Add(lossAt(rate, 1+math.Abs(math.Log10(rate)+2), -1))
	}
	return c
}

func TestSuggestedRate(t *testing.T) {
	c := valley()
	rate, ok := c.Suggested()
	lowest := c.Points[c.Lowest].Rate
	if !ok || lowest < 1e-2 || lowest > 4e-2 || rate != lowest/10 { // the smoothed loss is about ten steps late
		t.Errorf("suggested %v, %v of the lowest at %v", rate, ok, lowest)
	}
	var flat, empty RateCurve
	for rate := 1e-6; rate < 1; rate *= 2 {
		flat.Add(lossAt(rate, 1, 1))
	}
	for _, c := range []RateCurve{flat, empty} {
		if rate, ok := c.Suggested(); ok {
			t.Errorf("a rate of %v is suggested by %d equal losses", rate, len(c.Points))
		}
		line := RateLineOf(c)
		if line.Suggested != nil || (line.Lowest != nil) != (len(c.Points) > 0) || line.Curve == nil {
			t.Errorf("the line of %d equal losses is %+v", len(c.Points), line)
		}
	}
}

func TestRateCurveDiverges(t *testing.T) {
	var c RateCurve
	for i := range 30 {
		if c.Diverged {
			t.Fatalf("diverged after %d steps", i)
		}
		c.Add(lossAt(float64(i+1), 1, 1))
	}
	c.Add(lossAt(31, 100, 1))
	if !c.Diverged {
		t.Error("a smoothed loss of more than four times the smallest is none that diverges")
	}
}
