package heads

import (
	"errors"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("attention_pattern", AttentionPatternOptions{FitTexts: 2000, AlarmOptions: AlarmOptions{0.05}},
		newAttentionPattern, outputs.Anomaly)
}

// AttentionPatternOptions are the keys that may stand beside `type: attention_pattern`.
type AttentionPatternOptions struct {
	FitTexts int `yaml:"fit_texts" range:"[2,)" doc:"normal training texts that each evaluation fits the Gaussian to"`

	AlarmOptions `yaml:",inline"`
}

func (AttentionPatternOptions) Traits() Traits { return Traits{Fitted: true, Maps: true} }

// attentionPattern detects texts whose attention differs from that of normal ones. Its features of the encoder's maps
// A [T T] are for each layer and head, as means over queries i,
//
//	entropy      -Σ_j A_ij·log A_ij / log T, 0 where T is 1
//	distance     Σ_j A_ij·|i-j| / (T-1), 0 where T is 1
//	first        A_i0, the mass on [CLS]
//	separators   the mass on the last token of each segment, [SEP]
//	diagonal     A_ii
//
// in this order, layer after layer and in it attention head after attention head; then, for each lens of a focus head
// that reads the same texts, in their order, the mean centre and the mean aperture. A Gaussian is fitted to these
// features f of n normal training texts: with their mean m and their population deviation s, which is 1 for a feature
// that does not vary,
//
//	x = (f - m)/s    S = Σ x·xᵀ/n    C = (1-δ)·S + δ·(tr S/F)·I    distance = √(xᵀ·C⁻¹·x)
//
// where F is the number of features and δ in [0, 1] the shrinkage of Ledoit & Wolf 2004, as scikit-learn's
// LedoitWolf(assume_centered=True) has it. Features do not vary if s is at most 1e-6·|m|. If C has no Cholesky
// factorization, 1e-6 is added to its diagonal, then 1e-5, 1e-4 and so on until it has one. Of N normal training
// texts, in their order, the Gaussian is fitted to those of number ⌊i·N/n⌋ from 0, for i from 0 to n-1, with n =
// fit_texts, or to all if there are no more. A text in windows is fitted by the mean of their features; its distance is
// the mean of their distances. Nothing is learned by gradients.
type attentionPattern struct {
	alarm
	maps     Attention
	lenses   []Lenses
	fitTexts int
	features int
	normal   gaussian
}

const (
	perMap  = 5 // features of an attention map
	perLens = 2 // features of a lens
)

func newAttentionPattern(o AttentionPatternOptions, env Env) (Head, error) {
	a, err := newAlarm(o.AlarmOptions, env)
	switch {
	case err != nil:
		return nil, err
	case env.Attention == Attention{} && len(env.Lenses) == 0:
		return nil, errors.New("the encoder has no attention maps; a transformer has, and head reconstruction takes " +
			"any encoder")
	}
	features := env.Attention.Layers * env.Attention.Heads * perMap
	for _, l := range env.Lenses {
		features += l.Count * perLens
	}
	return &attentionPattern{a, env.Attention, env.Lenses, o.FitTexts, features, newGaussian(env.Params, features)}, nil
}

func (h *attentionPattern) Describe() Description {
	return Description{Output: outputs.Anomaly, Observe: h.observe, Fitter: h, Tuner: h}
}

// observe requests the encoder's attention maps and the lenses, and computes the features from them.
func (h *attentionPattern) observe(p *nn.Pass, rows nn.Rows) {
	n := h.features
	all := p.Floats(rows.Texts() * n) // [B F]
	p.Put(h, all)
	for layer := range h.maps.Layers {
		p.Observe(nn.AttentionMaps(layer), func(text int, shape []int, maps []float32) {
			tokens, into := shape[1], all[text*n+layer*h.maps.Heads*perMap:]
			separators := separatorsOf(rows, text)
			for m := range shape[0] {
				describeMap(into[m*perMap:], maps[m*tokens*tokens:(m+1)*tokens*tokens], tokens, separators)
			}
		})
	}
	at := h.maps.Layers * h.maps.Heads * perMap
	for _, lenses := range h.lenses {
		first := at
		for k, name := range []string{nn.FocusCentre(lenses.Name), nn.FocusAperture(lenses.Name)} {
			p.Observe(name, func(text int, shape []int, values []float32) {
				for lens := range shape[1] {
					all[text*n+first+lens*perLens+k] = meanOf(values, lens, shape)
				}
			})
		}
		at += lenses.Count * perLens
	}
}

// separatorsOf lists the last token of each segment of a text, as indices in the text.
func separatorsOf(rows nn.Rows, text int) []int {
	segment := rows.Segment[rows.Starts[text]:rows.Starts[text+1]]
	var last []int
	for t := range segment {
		if t+1 == len(segment) || segment[t+1] != segment[t] {
			last = append(last, t)
		}
	}
	return last
}

// describeMap writes the features of an attention map [T T] to into.
func describeMap(into, weights []float32, tokens int, separators []int) {
	var entropy, distance, first, last, diagonal float64
	for i := range tokens {
		row := weights[i*tokens : (i+1)*tokens]
		for j, w := range row {
			if w > 0 {
				entropy -= float64(w) * math.Log(float64(w))
			}
			distance += float64(w) * math.Abs(float64(i-j))
		}
		for _, j := range separators {
			last += float64(row[j])
		}
		first, diagonal = first+float64(row[0]), diagonal+float64(row[i])
	}
	n := float64(tokens)
	if tokens > 1 { // a single token has neither entropy nor distance
		entropy, distance = entropy/math.Log(n), distance/(n-1)
	}
	for k, v := range [perMap]float64{entropy, distance, first, last, diagonal} {
		into[k] = float32(v / n)
	}
}

// meanOf is the mean of a column of values of a shape [T lenses].
func meanOf(values []float32, column int, shape []int) float32 {
	sum := 0.0
	for t := range shape[0] {
		sum += float64(values[t*shape[1]+column])
	}
	return float32(sum / float64(shape[0]))
}

// Logits are the features [B F] that observe fills in; zeros if it was not called.
func (h *attentionPattern) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	n := h.features
	features, observed := p.Get(h).([]float32)
	if !observed {
		features = p.Floats(seen.Rows.Texts() * n)
	}
	return LogitsOf(seen, p.Input(features, seen.Rows.Texts(), n))
}

func (h *attentionPattern) Units([]corpus.Target) float64 { return 0 }

func (h *attentionPattern) Loss(*nn.Pass, Logits, []corpus.Target) *nn.Node { return nil }

func (h *attentionPattern) Predict(logits Logits) []corpus.Prediction {
	texts, distances := textsOf(logits.Rows), make([]float64, outputs.Examples(logits.Rows))
	for b, e := range logits.Rows.Example {
		distances[e] += h.normal.distance(h.text(logits, b)) / float64(texts[e])
	}
	return h.predict(distances)
}

func (h *attentionPattern) text(logits Logits, b int) []float32 {
	n := h.features
	return nn.Values(logits.Nodes[0])[b*n : (b+1)*n]
}

// Choose lists normal examples, at most fit_texts of them, evenly spaced, as a file may be sorted.
func (h *attentionPattern) Choose(targets []corpus.Target) []int {
	var chosen []int
	for i, t := range targets {
		if normal(t) {
			chosen = append(chosen, i)
		}
	}
	n := min(len(chosen), h.fitTexts)
	for i := range n {
		chosen[i] = chosen[i*len(chosen)/n]
	}
	return chosen[:n]
}

func (h *attentionPattern) Features(logits Logits) [][]float32 {
	texts := textsOf(logits.Rows)
	all := make([][]float32, len(texts))
	for b, e := range logits.Rows.Example {
		if all[e] == nil {
			all[e] = make([]float32, h.features)
		}
		for f, v := range h.text(logits, b) {
			all[e][f] += v / texts[e]
		}
	}
	return all
}

func (h *attentionPattern) Fit(features [][]float32) { h.normal.fit(features) }
