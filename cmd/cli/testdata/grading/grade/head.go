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
// output CNN for age estimation"): of a text's mean state x
//
//	P(rank > k) = σ(w_k·x + b_k)    loss = Σ_k -log P(rank > k or not)    rank = how many P(rank > k) are above 1/2
type thresholds struct {
	drop   nn.Dropout
	score  *nn.Linear
	grades int
}

// NewHead makes a head for the grades of env.
func NewHead(o Options, env heads.Env) (heads.Head, error) {
	switch {
	case env.Output != Kind:
		return nil, env.Refuse(Kind)
	case len(env.Labels) < 2:
		return nil, fmt.Errorf("want at least 2 grades, have %q", env.Labels)
	}
	n := len(env.Labels)
	score := nn.NewLinear(env.Params.In("score"), env.Width, n-1)
	return &thresholds{nn.NewDropout(env.Params.In("drop"), o.Dropout), score, n}, nil
}

// Output returns Kind.
func (h *thresholds) Output() *outputs.Kind { return Kind }

func (h *thresholds) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	return heads.LogitsOf(seen, h.score.Apply(h.drop.Apply(p, nn.MeanPool(seen)))) // [B K-1]
}

// Units counts the texts whose grade occurs in training.
func (h *thresholds) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.Targets[Target](gold) {
		if t != nil && t.Rank >= 0 {
			n++
		}
	}
	return n
}

// Loss is the sum of the binary cross entropies, nil if nothing is labelled. An example's loss is the mean over its
// windows.
func (h *thresholds) Loss(_ *nn.Pass, scores heads.Logits, gold []corpus.Target) *nn.Node {
	targets, rows := outputs.Targets[Target](gold), scores.Rows
	above, labelled := make([]int8, rows.Texts()*(h.grades-1)), false
	weights := perWindow(rows)
	for b, e := range rows.Example {
		row := above[b*(h.grades-1) : (b+1)*(h.grades-1)]
		for k := range row {
			switch t := targets[e]; {
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
	return nn.LabelLoss{Rows: weights}.BinaryCrossEntropy(scores.Nodes[0], above)
}

// Predict returns for each example the probabilities of its thresholds, the mean over its windows, and its rank.
func (h *thresholds) Predict(scores heads.Logits) []corpus.Prediction {
	predictions := make([]Prediction, outputs.Examples(scores.Rows))
	values, weights := nn.Values(scores.Nodes[0]), perWindow(scores.Rows)
	for b, e := range scores.Rows.Example {
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

// perWindow returns 1/n for each window of an example of n windows.
func perWindow(rows nn.Rows) []float32 {
	texts, weights := make([]float32, outputs.Examples(rows)), make([]float32, rows.Texts())
	for _, e := range rows.Example {
		texts[e]++
	}
	for b, e := range rows.Example {
		weights[b] = 1 / texts[e]
	}
	return weights
}
