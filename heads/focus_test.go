package heads

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// The label of a text depends on the signal at one position, seven tenths of its length. All other positions have
// random signals of the same form. The lens has to move to that position, and its aperture to become small.
func TestTheLensMovesToWhatTheLabelDependsOn(t *testing.T) {
	const (
		tokens, width, texts = 41, 6, 32
		place                = 28 // of 40
	)
	env := Env{Output: outputs.Label, Labels: []string{"a", "b"}, Width: width, Params: nn.NewParams(2).In("head")}
	o := focusDefaults
	o.LSTMLayers, o.AttentionHeads, o.Dropout = 0, 1, 0
	head, err := newFocus(o, env)
	if err != nil {
		t.Fatal(err)
	}
	h := head.(*focus)
	r := rand.New(rand.NewPCG(1, 1))
	randomBatch := func(p *nn.Pass) (nn.Hidden, []corpus.Target) {
		states, gold := make([]float32, texts*tokens*width), make([]corpus.Target, texts)
		rows := nn.Rows{Starts: []int{0}}
		for b := range texts {
			id := r.IntN(2)
			gold[b] = label(id)
			for i := range tokens {
				state := states[(b*tokens+i)*width:][:width]
				for j := range state {
					state[j] = float32(0.1 * r.NormFloat64())
				}
				signal := r.IntN(2)
				if i == place {
					signal = id
				}
				state[signal]++
			}
			rows.Starts, rows.Example = append(rows.Starts, (b+1)*tokens), append(rows.Example, b)
		}
		return nn.Hidden{States: p.Input(states, texts*tokens, width), Rows: rows}, gold
	}

	params := env.Params.All()
	optimizer, p := nn.NewAdamW(0), nn.NewPass(1)
	right, centre, aperture := 0, 0.0, 0.0
	var course lensPlot
	for step := range 400 {
		p.Reset(uint64(step))
		p.Training = true
		right, centre, aperture = 0, 0, 0
		mean := func(into *float64) func(int, []int, []float32) {
			return func(_ int, _ []int, values []float32) {
				for _, v := range values {
					*into += float64(v) / (texts * tokens)
				}
			}
		}
		p.Observe(nn.FocusCentre(h.lens.Name), mean(&centre))
		p.Observe(nn.FocusAperture(h.lens.Name), mean(&aperture))
		hidden, gold := randomBatch(p)
		logits := h.Logits(p, hidden)
		loss := h.Loss(p, logits, gold)
		if err := p.Forward(); err != nil {
			t.Fatal(err)
		}
		for b, prediction := range h.Predict(logits) {
			if outputs.As[outputs.LabelPrediction](prediction).ID == outputs.As[outputs.LabelTarget](gold[b]).ID {
				right++
			}
		}
		into := nn.NewGradients(params)
		if err := p.Backward(loss, 1./texts, into, nil, nil); err != nil {
			t.Fatal(err)
		}
		optimizer.Step(params, into, 1, 0.02)
		course.add(centre, aperture, float64(right)/texts)
	}
	if *plot != "" {
		if err := os.WriteFile(*plot, course.svg(place/float64(tokens-1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := place / float64(tokens-1); !(math.Abs(centre-want) <= 0.05) || !(aperture <= 0.1) {
		t.Errorf("the lens has centre %.3f and aperture %.3f, want a centre of %.3f and a small aperture", centre,
			aperture, want)
	}
	if right < texts*9/10 {
		t.Errorf("%d of %d predictions are right, want nine in ten", right, texts)
	}
}

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
