package heads

import (
	"errors"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("similarity", similarityDefaults, newSimilarity, outputs.Similarity)
	DefaultFor("similarity", outputs.Similarity)
}

var similarityDefaults = SimilarityOptions{Loss: "cosent", Scale: 20, Range: []float64{0, 1}, Pool: "mean"}

// SimilarityOptions are the keys that may stand beside `type: similarity`.
type SimilarityOptions struct {
	Loss  string    `yaml:"loss" choice:"cosent|mse" doc:"cosent: the order of cosines (Su 2022); mse: their distance"`
	Scale float64   `yaml:"scale" range:"(0,1000]" doc:"factor of the cosines in cosent"`
	Range []float64 `yaml:"range" takes:"[LEAST, MOST]" doc:"[LEAST, MOST]: the gold numbers of a cosine of 0 and of 1"`

	Pool string `yaml:"pool" choice:"cls|mean|max|attention" doc:"cls: the first token; attention: a learned mean"`
}

// Traits implements HasTraits: cosent compares the examples of a batch.
func (o SimilarityOptions) Traits() Traits { return Traits{Compares: o.Loss == "cosent"} }

// similarity is the cosine of the pooled states u and v of two texts, encoded separately (Reimers & Gurevych 2019,
// "Sentence-BERT"), cos = u·v/(|u|·|v|). Over the pairs of a batch the loss cosent (Su 2022, "CoSENT") is
//
//	log(1 + Σ exp(scale·(cos_i - cos_j)))    over all i, j where the gold similarity of pair j is above that of pair i
//
// and mse the mean of (cos - (gold - LEAST)/(MOST - LEAST))². The prediction is LEAST + (MOST - LEAST)·cos. The vector
// of a text in windows is the mean of theirs; a norm |u| counts as at least 1e-8.
//
// The value of cosent depends on which pairs are in a batch. The loss of an evaluation, or of a step of several
// batches, is the mean of those of its batches, each times its number of pairs with a gold number. Evaluations have
// batches of pairs of similar length, twice as large as those of training: docs/formulas.md.
type similarity struct {
	SimilarityOptions
	pooling
}

func newSimilarity(o SimilarityOptions, env Env) (Head, error) {
	if o.Loss == "mse" && o.Scale != similarityDefaults.Scale {
		return nil, errors.New("scale has no effect on loss: mse")
	}
	if err := checkLimits(o.Range); err != nil {
		return nil, err
	}
	return &similarity{o, newPool(o.Pool, env)}, nil
}

func (h *similarity) Describe() Description {
	inRange := func(t corpus.Target) error { return checkRange(t, h.Range) }
	return Description{Output: outputs.Similarity, CheckTarget: inRange, Reads: h.reads, Soft: softNumbers(h)}
}

func (h *similarity) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	pooled := h.pool(seen) // [B D]
	first, second := sides(seen.Rows)
	return LogitsOf(seen, nn.Cosine(nn.MeanOfRows(pooled, first), nn.MeanOfRows(pooled, second))) // [E 1]
}

// sides lists the windows of each example's first and second text.
func sides(rows nn.Rows) (first, second [][]int) {
	first, second = make([][]int, outputs.Examples(rows)), make([][]int, outputs.Examples(rows))
	for b, e := range rows.Example {
		if rows.Second[b] {
			second[e] = append(second[e], b)
		} else {
			first[e] = append(first[e], b)
		}
	}
	return first, second
}

func (h *similarity) Units(gold []corpus.Target) float64 { return labelled(gold) }

func (h *similarity) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	numbers := make([]float64, len(gold))
	values, weights, has := make([]float32, len(gold)), make([]float32, len(gold)), false
	for e, t := range gold {
		numbers[e] = math.NaN()
		if target := outputs.As[outputs.NumberTarget](t); target != nil {
			numbers[e], has = target.Value, true
			values[e], weights[e] = float32((target.Value-h.Range[0])/(h.Range[1]-h.Range[0])), 1
		}
	}
	switch {
	case !has:
		return nil
	case h.SimilarityOptions.Loss == "mse":
		return nn.NumberLoss(logits.Nodes[0], values, weights, nn.Distances["mse"])
	}
	return nn.CoSENT(logits.Nodes[0], numbers, h.Scale)
}

func (h *similarity) Predict(logits Logits) []corpus.Prediction {
	values := make([]float64, outputs.Examples(logits.Rows))
	for e, cosine := range nn.Values(logits.Nodes[0]) {
		values[e] = h.Range[0] + (h.Range[1]-h.Range[0])*float64(cosine)
	}
	return numbers(values)
}
