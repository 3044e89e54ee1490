package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// RateCurve is the result of a learning rate range test.
type RateCurve struct {
	Points   []RatePoint
	Diverged bool // the test has ended before its last rate

	heads []smoothedHead
	least float64 // smallest smoothed loss
}

// RatePoint is a step of a test. Loss is the sum of the step's mean losses times the heads' weights; Smoothed is that
// of the running means of all heads' losses, so that it does not depend on which tasks have a batch in the step.
type RatePoint struct {
	Rate, Loss, Smoothed float64
}

// smoothedHead is the running mean of a head's losses.
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

	// before a head's first loss, that loss counts
	for _, h := range c.heads[known:] {
		for i := range c.Points {
			c.Points[i].Smoothed += h.weight * h.mean
		}
	}
	if len(c.heads) > known || len(c.Points) == 0 {
		c.least = math.Inf(1)
		for _, p := range c.Points {
			c.least = min(c.least, p.Smoothed)
		}
	}

	// their sum
	sum := 0.0
	for _, h := range c.heads {
		sum += h.weight * h.mean
	}
	c.Points = append(c.Points, RatePoint{step.Rate, loss, sum})
	c.least = min(c.least, sum)
	c.Diverged = c.least > 0 && sum > diverges*c.least
}

// head returns the running mean of a loss's head.
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

// add adds a loss.
func (h *smoothedHead) add(loss float64) {
	h.sum = smoothing*h.sum + (1-smoothing)*loss
	h.n++
	h.mean = h.sum / (1 - math.Pow(smoothing, float64(h.n)))
}

// Lowest returns the index of the smallest smoothed loss.
func (c RateCurve) Lowest() int {
	lowest := 0
	for i, p := range c.Points {
		if p.Smoothed < c.Points[lowest].Smoothed {
			lowest = i
		}
	}
	return lowest
}

// Suggested returns the suggested learning rate, a tenth of that of the lowest smoothed loss: at that one the loss has
// stopped falling. ok is false where the loss does not fall by a twentieth.
func (c RateCurve) Suggested() (rate float64, ok bool) {
	if len(c.Points) == 0 {
		return 0, false
	}
	lowest := c.Points[c.Lowest()]
	return lowest.Rate / 10, lowest.Smoothed < 0.95*c.Points[0].Smoothed
}

// RateLine is the JSON of a RateCurve.
type RateLine struct {
	Suggested *float64        `json:"suggested"` // nil where the loss does not fall
	Lowest    *float64        `json:"lowest"`    // rate of the smallest smoothed loss; nil without points
	Diverged  bool            `json:"diverged"`
	Curve     []RatePointLine `json:"curve"`
}

// RatePointLine is a step of a RateLine.
type RatePointLine struct {
	Step     int     `json:"step"`
	Rate     float64 `json:"rate"`
	Loss     float64 `json:"loss"`
	Smoothed float64 `json:"smoothed"`
}

// RateLineOf returns the JSON value of a curve.
func RateLineOf(c RateCurve) RateLine {
	line := RateLine{Diverged: c.Diverged, Curve: []RatePointLine{}}
	if rate, ok := c.Suggested(); ok {
		line.Suggested = &rate
	}
	if len(c.Points) > 0 {
		line.Lowest = &c.Points[c.Lowest()].Rate
	}
	for i, p := range c.Points {
		line.Curve = append(line.Curve, RatePointLine{i + 1, p.Rate, p.Loss, p.Smoothed})
	}
	return line
}

// Sizes of the image of a RateCurve, in pixels.
const (
	svgWidth, svgHeight = 720, 420
	svgLeft, svgRight   = 60, 20 // margins of the plot
	svgTop, svgBottom   = 40, 50
)

// rateAxes map rates, on a logarithmic scale, and losses to pixels.
type rateAxes struct{ firstRate, lastRate, least, most float64 }

func (a rateAxes) x(rate float64) float64 {
	span := max(1e-9, math.Log(a.lastRate/a.firstRate))
	return svgLeft + (svgWidth-svgLeft-svgRight)*math.Log(rate/a.firstRate)/span
}

// y clips losses above the largest one that is shown.
func (a rateAxes) y(loss float64) float64 {
	return svgTop + (svgHeight-svgTop-svgBottom)*(a.most-min(loss, a.most))/max(1e-9, a.most-a.least)
}

// rates returns the rates that have a label: powers of ten, not all where labels would overlap, and 2 and 5 times them
// where they are few.
func (a rateAxes) rates() []float64 {
	const most = (svgWidth - svgLeft - svgRight) / 50 // labels
	first, last := math.Log10(a.firstRate)-1e-9, math.Log10(a.lastRate)+1e-9
	step := max(1, math.Ceil((last-first)/most))
	factors := []float64{1}
	if last-first < 3 {
		factors = []float64{1, 2, 5}
	}
	var all []float64
	for decade := step * math.Floor(first/step); decade <= last; decade += step {
		for _, factor := range factors {
			if rate := factor * math.Pow(10, decade); math.Log10(rate) >= first && math.Log10(rate) <= last {
				all = append(all, rate)
			}
		}
	}
	return all
}

// losses returns the losses that have a label, two or more: multiples of 1, 2 or 5 times a power of ten.
func (a rateAxes) losses() []float64 {
	const most = 6
	span := max(1e-9, a.most-a.least)
	step := math.Pow(10, math.Floor(math.Log10(span/most)))
	for _, factor := range []float64{10, 5, 2} {
		if span/(factor*step) >= 3 {
			step *= factor
			break
		}
	}
	var all []float64
	for n := math.Ceil(a.least / step); n*step <= a.most+1e-9*span; n++ {
		all = append(all, n*step)
	}
	return all
}

// lossLabel returns a loss with the digits that differ from one to the next, a step further.
func lossLabel(loss, step float64) string {
	if math.Abs(loss) >= 1e5 || step < 1e-4 {
		return fmt.Sprintf("%.1e", loss)
	}
	return strconv.FormatFloat(loss, 'f', max(0, -int(math.Floor(math.Log10(step)+1e-9))), 64)
}

// line returns the points of a line through values.
func (a rateAxes) line(points []RatePoint, value func(RatePoint) float64) string {
	var all []string
	for _, p := range points {
		all = append(all, fmt.Sprintf("%.1f,%.1f", a.x(p.Rate), a.y(value(p))))
	}
	return strings.Join(all, " ")
}

// WriteRateSVG writes a curve as an SVG image: the losses of the steps in grey, the smoothed loss, and the suggested
// rate. Losses of more than the first smoothed one and a half of its magnitude are clipped.
func WriteRateSVG(w io.Writer, c RateCurve) {
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n", svgWidth, svgHeight, svgWidth, svgHeight)
	defer fmt.Fprintln(w, "</svg>")
	fmt.Fprintln(w, `<rect width="100%" height="100%" fill="white"/>`)
	if len(c.Points) == 0 {
		return
	}

	// axes
	last := len(c.Points) - 1
	first := c.Points[0].Smoothed
	a := rateAxes{
		c.Points[0].Rate, c.Points[last].Rate, c.Points[c.Lowest()].Smoothed, first + 0.5*math.Abs(first),
	}
	for _, p := range c.Points {
		a.least = min(a.least, p.Loss)
	}
	a.most = max(a.most, a.least+1e-6*max(1, math.Abs(a.least)))
	const bottom = svgHeight - svgBottom
	label := func(x, y float64, anchor, text string) {
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, text)
	}
	for _, rate := range a.rates() {
		x := a.x(rate)
		fmt.Fprintf(w, `<path d="M%.1f %d V%d" stroke="#ddd"/>`+"\n", x, svgTop, bottom)
		label(x, bottom+18, "middle", fmt.Sprintf("%.0e", rate))
	}
	losses := a.losses()
	for _, loss := range losses {
		fmt.Fprintf(w, `<path d="M%d %.1f H%d" stroke="#ddd"/>`+"\n", svgLeft, a.y(loss), svgWidth-svgRight)
		label(svgLeft-6, a.y(loss)+4, "end", lossLabel(loss, losses[1]-losses[0]))
	}
	label((svgWidth+svgLeft-svgRight)/2, svgHeight-10, "middle", "learning rate")
	label(svgLeft, svgTop-24, "start", "loss (smoothed: blue)")

	// lines
	fmt.Fprintf(w, `<polyline fill="none" stroke="#bbb" points="%s"/>`+"\n",
		a.line(c.Points, func(p RatePoint) float64 { return p.Loss }))
	fmt.Fprintf(w, `<polyline fill="none" stroke="#1f5fbf" stroke-width="2" points="%s"/>`+"\n",
		a.line(c.Points, func(p RatePoint) float64 { return p.Smoothed }))
	if rate, ok := c.Suggested(); ok && rate >= a.firstRate {
		x := a.x(rate)
		fmt.Fprintf(w, `<path d="M%.1f %d V%d" stroke="#c33" stroke-dasharray="4 3"/>`+"\n", x, svgTop, bottom)
		const half = 60 // of the label's width
		inside := min(max(x, svgLeft+half), svgWidth-svgRight-half)
		label(inside, svgTop-6, "middle", fmt.Sprintf("suggested: %.1e", rate))
	}
}
