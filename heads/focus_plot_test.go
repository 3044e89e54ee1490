package heads

import (
	"bytes"
	"flag"
	"fmt"
)

var plot = flag.String("plot", "", "`FILE` for a plot of the lens during training, as docs/lens.svg")

// lensPlot has, for each step, the means of a lens and the fraction of right predictions of its head.
type lensPlot struct{ centre, aperture, right []float64 }

func (l *lensPlot) add(centre, aperture, right float64) {
	l.centre, l.aperture, l.right = append(l.centre, centre), append(l.aperture, aperture), append(l.right, right)
}

// svg draws centre, aperture and the fraction of right predictions over the steps, and a line at the position that
// determines the label.
func (l *lensPlot) svg(place float64) []byte {
	const width, height, left, top = 640.0, 280.0, 44.0, 16.0
	x := func(step int) float64 { return left + width*float64(step)/float64(len(l.centre)-1) }
	y := func(v float64) float64 { return top + height*(1-v) }
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", left+width+130, top+height+40)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for _, tick := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&b, `<path d="M%g %gh%g" stroke="#ddd"/><text x="%g" y="%g" text-anchor="end">%g</text>`+"\n", left,
			y(tick), width, left-6, y(tick)+4, tick)
	}
	for step := 0; step < len(l.centre); step += 100 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%d</text>`+"\n", x(step), top+height+16, step)
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">training step</text>`+"\n", left+width/2, top+height+34)
	fmt.Fprintf(&b, `<path d="M%g %gh%g" stroke="#999" stroke-dasharray="5 4"/><text x="%g" y="%g" fill="#777">the token</text>`+"\n", left, y(place), width, left+width+6, y(place)-8)
	for _, line := range []struct {
		name, colour string
		values       []float64
	}{{"right predictions", "#bbb", l.right}, {"aperture σ", "#d95f02", l.aperture},
		{"centre μ", "#1b9e77", l.centre}} {
		fmt.Fprintf(&b, `<polyline fill="none" stroke-width="2" stroke="%s" points="`, line.colour)
		for step := 0; step < len(line.values); step += 4 {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(step), y(line.values[step]))
		}
		last := line.values[len(line.values)-1]
		fmt.Fprintf(&b, `"/><text x="%g" y="%.1f" fill="%s">%s</text>`+"\n", left+width+6, y(last)+8, line.colour,
			line.name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
