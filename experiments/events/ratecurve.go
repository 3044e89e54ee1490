package events

import (
	"math"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// RateCurve is the result of a learning rate range test.
type RateCurve struct {
	Points   []RatePoint
	Lowest   int  // index of the smallest smoothed loss
	Diverged bool // the test has ended before its last rate

	heads []smoothedHead
}

// RatePoint is a step of a test. Loss is the sum of the step's mean losses times the heads' weights; Smoothed is that
// of the running means of all heads' losses, so that it does not depend on which tasks have a batch in the step.
type RatePoint struct {
	Step     int     `json:"step"`
	Rate     float64 `json:"rate"`
	Loss     float64 `json:"loss"`
	Smoothed float64 `json:"smoothed"`
}

type smoothedHead struct {
	head   multitask.HeadName
	weight float64
	mean   float64 // of the steps so far that have labelled units
	sum    float64 // Σ smoothing^(n-i)·loss_i, over n losses
	n      int
}

const (
	smoothing = 0.9 // decay rate of running means, about ten steps
	diverges  = 4   // times the smallest smoothed loss
)

// Add adds a step that has been made. The test diverges where the smoothed loss is 4 times its smallest value so far.
func (c *RateCurve) Add(step train.Step) {
	// the running means
	loss, known := 0.0, len(c.heads)
	for _, l := range step.Losses {
		if l.Units > 0 && l.Weight > 0 {
			c.head(l).add(l.Mean())
			loss += l.Weight * l.Mean()
		}
	}

	// before a head's first loss, that loss counts: in all points, so that the lowest one stays
	for _, h := range c.heads[known:] {
		for i := range c.Points {
			c.Points[i].Smoothed += h.weight * h.mean
		}
	}

	// their sum
	sum := 0.0
	for _, h := range c.heads {
		sum += h.weight * h.mean
	}
	c.Points = append(c.Points, RatePoint{len(c.Points) + 1, step.Rate, loss, sum})
	if sum < c.Points[c.Lowest].Smoothed {
		c.Lowest = len(c.Points) - 1
	}
	least := c.Points[c.Lowest].Smoothed
	c.Diverged = least > 0 && sum > diverges*least
}

func (c *RateCurve) head(l multitask.Loss) *smoothedHead {
	name := multitask.HeadName{Task: l.Task, Head: l.Head}
	for h := range c.heads {
		if c.heads[h].head == name {
			return &c.heads[h]
		}
	}
	c.heads = append(c.heads, smoothedHead{head: name, weight: l.Weight})
	return &c.heads[len(c.heads)-1]
}

func (h *smoothedHead) add(loss float64) {
	h.sum = smoothing*h.sum + (1-smoothing)*loss
	h.n++
	h.mean = h.sum / (1 - math.Pow(smoothing, float64(h.n)))
}

// Suggested returns the suggested learning rate, a tenth of that of the lowest smoothed loss: at that one the loss has
// stopped falling. ok is false where the loss does not fall by a twentieth.
func (c RateCurve) Suggested() (rate float64, ok bool) {
	if len(c.Points) == 0 {
		return 0, false
	}
	lowest := c.Points[c.Lowest]
	return lowest.Rate / 10, lowest.Smoothed < 0.95*c.Points[0].Smoothed
}

// RateLine is the JSON of a RateCurve.
type RateLine struct {
	Suggested *float64    `json:"suggested"` // nil where the loss does not fall
	Lowest    *float64    `json:"lowest"`    // rate of the smallest smoothed loss; nil without points
	Diverged  bool        `json:"diverged"`
	Curve     []RatePoint `json:"curve"`
}

// RateLineOf returns the JSON value of a curve.
func RateLineOf(c RateCurve) RateLine {
	line := RateLine{Diverged: c.Diverged, Curve: append([]RatePoint{}, c.Points...)}
	if rate, ok := c.Suggested(); ok {
		line.Suggested = &rate
	}
	if len(c.Points) > 0 {
		line.Lowest = &c.Points[c.Lowest].Rate
	}
	return line
}
