package grade

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	heads.Register("thresholds", Options{Dropout: 0.1}, NewHead, Kind)
	heads.DefaultFor("thresholds", Kind)
}

// Options are the keys that may stand beside `type: thresholds`.
type Options struct {
	Dropout float64 `yaml:"dropout" range:"[0,1)" doc:"dropout rate of the features in training"`
}

// thresholds divides a scale of K grades by K-1 binary classifiers (Niu et al. 2016, "Ordinal regression with multiple
// output CNN for age estimation"), with x the mean state of a text and y_k = 1 if its rank is above k, else 0:
//
//	p_k = P(rank > k) = σ(w_k·x + b_k)    loss = -Σ_k log(p_k if y_k = 1, else 1-p_k)    rank = |{k : p_k > 1/2}|
type thresholds struct {
	drop   nn.Dropout
	output *nn.Linear // [D K-1]
	grades int        // K
}

// NewHead makes a head for the grades of env.
func NewHead(o Options, env heads.Env) (heads.Head, error) {
	n := len(env.Labels)
	if n < 2 {
		return nil, fmt.Errorf("want at least 2 grades, have %q", env.Labels)
	}
	output := nn.NewLinear(env.Params.In("score"), env.Width, n-1)
	return &thresholds{nn.NewDropout(env.Params.In("drop"), o.Dropout), output, n}, nil
}

// Describe returns the description of a head of grades.
func (h *thresholds) Describe() heads.Description { return heads.Description{Output: Kind} }

// Logits returns the logits [B K-1] of the thresholds.
func (h *thresholds) Logits(p *nn.Pass, states nn.Hidden) heads.Logits {
	return heads.LogitsOf(states, h.output.Apply(h.drop.Apply(p, nn.MeanPool(states))))
}

// Units counts the examples with a grade that training has.
func (h *thresholds) Units(targets []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.AllAs[Target](targets) {
		if t != nil && t.Rank >= 0 {
			n++
		}
	}
	return n
}

// Loss is the sum of the binary cross entropies, nil if nothing is labelled. An example's loss is the mean over its
// windows.
func (h *thresholds) Loss(_ *nn.Pass, logits heads.Logits, targets []corpus.Target) *nn.Node {
	grades, rows := outputs.AllAs[Target](targets), logits.Rows
	above, labelled := make([]int8, rows.Texts()*(h.grades-1)), false
	weights := perWindow(rows)
	for b, e := range rows.Example {
		row := above[b*(h.grades-1) : (b+1)*(h.grades-1)]
		for k := range row {
			switch t := grades[e]; {
			case t == nil || t.Rank < 0:
				row[k] = corpus.Unlabelled
				continue
			case t.Rank > k:
				row[k] = 1
			}
			labelled = true
		}
	}
	if !labelled {
		return nil
	}
	return nn.LabelLoss{Rows: weights}.BinaryCrossEntropy(logits.Nodes[0], above)
}

// Predict returns for each example the probabilities of its thresholds, the mean over its windows, and its rank.
func (h *thresholds) Predict(logits heads.Logits) []corpus.Prediction {
	predictions := make([]Prediction, outputs.Examples(logits.Rows))
	values, weights := nn.Values(logits.Nodes[0]), perWindow(logits.Rows)
	for b, e := range logits.Rows.Example {
		p := &predictions[e]
		if p.Above == nil {
			p.Above = make([]float32, h.grades-1)
		}
		for k, above := range nn.Sigmoids(values[b*(h.grades-1) : (b+1)*(h.grades-1)]) {
			p.Above[k] += above * weights[b]
		}
	}
	for e := range predictions {
		for _, above := range predictions[e].Above {
			if above > 0.5 {
				predictions[e].Rank++
			}
		}
	}
	return outputs.Erase(predictions)
}

// perWindow returns for each window 1/n, where n is the number of its example's windows.
func perWindow(rows nn.Rows) []float32 {
	windows, weights := make([]float32, outputs.Examples(rows)), make([]float32, rows.Texts())
	for _, e := range rows.Example {
		windows[e]++
	}
	for b, e := range rows.Example {
		weights[b] = 1 / windows[e]
	}
	return weights
}
