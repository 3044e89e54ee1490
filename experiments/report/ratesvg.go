package report

import (
	"fmt"
	"io"
	"math"
	"strings"
)

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

// line returns the points of a line through values.
func (a rateAxes) line(points []RatePoint, value func(RatePoint) float64) string {
	var all []string
	for _, p := range points {
		all = append(all, fmt.Sprintf("%.1f,%.1f", a.x(p.Rate), a.y(value(p))))
	}
	return strings.Join(all, " ")
}

// WriteRateSVG writes a curve as an SVG image: the losses of the steps in grey, the smoothed loss, and the suggested
// rate. Losses of more than 1.5 times the first smoothed one are clipped.
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
	a := rateAxes{
		c.Points[0].Rate, c.Points[last].Rate, c.Points[c.Lowest()].Smoothed, 1.5 * c.Points[0].Smoothed,
	}
	for _, p := range c.Points {
		a.least = min(a.least, p.Loss)
	}
	const bottom = svgHeight - svgBottom
	label := func(x, y float64, anchor, text string) {
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, text)
	}
	for decade := math.Ceil(math.Log10(a.firstRate) - 1e-9); decade <= math.Log10(a.lastRate)+1e-9; decade++ {
		x := a.x(math.Pow(10, decade))
		fmt.Fprintf(w, `<path d="M%.1f %d V%d" stroke="#ddd"/>`+"\n", x, svgTop, bottom)
		label(x, bottom+18, "middle", fmt.Sprintf("1e%+03.0f", decade))
	}
	for i := range 5 {
		loss := a.least + (a.most-a.least)*float64(i)/4
		fmt.Fprintf(w, `<path d="M%d %.1f H%d" stroke="#ddd"/>`+"\n", svgLeft, a.y(loss), svgWidth-svgRight)
		label(svgLeft-6, a.y(loss)+4, "end", fmt.Sprintf("%.3g", loss))
	}
	label((svgWidth+svgLeft-svgRight)/2, svgHeight-10, "middle", "learning rate")
	label(svgLeft, svgTop-14, "start", "loss (smoothed: blue)")

	// lines
	fmt.Fprintf(w, `<polyline fill="none" stroke="#bbb" points="%s"/>`+"\n",
		a.line(c.Points, func(p RatePoint) float64 { return p.Loss }))
	fmt.Fprintf(w, `<polyline fill="none" stroke="#1f5fbf" stroke-width="2" points="%s"/>`+"\n",
		a.line(c.Points, func(p RatePoint) float64 { return p.Smoothed }))
	if rate, ok := c.Suggested(); ok && rate >= a.firstRate {
		x := a.x(rate)
		fmt.Fprintf(w, `<path d="M%.1f %d V%d" stroke="#c33" stroke-dasharray="4 3"/>`+"\n", x, svgTop, bottom)
		label(x, svgTop-4, "middle", fmt.Sprintf("suggested: %.1e", rate))
	}
}
