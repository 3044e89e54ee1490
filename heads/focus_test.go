package heads

import (
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
	o := FocusOptions{LSTMHidden: 256, AttentionHeads: 1, MinAperture: 0.02, Normalise: "sum", Pool: "mean"}
	head, err := NewFocus(o, env)
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
