package calibration

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// Bins is the number of bins of equal width that calibration errors are computed in.
const Bins = 15

// Measures say how well probabilities agree with what is right. They are means over examples with one label, and over
// the decisions of all examples and labels where any number of labels may hold.
type Measures struct {
	// ECE is the expected calibration error: over bins of the probability, the mean of |fraction right - mean
	// probability|, weighted by their numbers: of the likeliest label's probability and whether that is right, or of
	// each decision's and whether it holds.
	ECE float64 `json:"ece"`
	// Brier is the mean of Σ_c (p_c - y_c)² over all labels c, or of (p - y)² of a decision.
	Brier float64 `json:"brier"`
	// NLL is the mean of -log p(gold), or the binary cross entropy of a decision. Probabilities count as at least 2^-23
	// and at most 1 - 2^-23, as in scikit-learn. An example whose label is not known does not count; nil without others.
	NLL *float64 `json:"nll"`
}

// clamp bounds a probability whose logarithm is taken.
func clamp(p float64) float64 { return min(max(p, 0x1p-23), 1-0x1p-23) }

// OneLabel measures probabilities [examples][labels] where one label is right; gold below 0: one that the head does not
// know.
func OneLabel(p [][]float32, gold []int) Measures {
	var m Measures
	var bins errorBins
	nll, known := 0.0, 0
	for i, row := range p {
		top := floats.Largest(row)
		bins.add(float64(row[top]), top == gold[i])
		for c, q := range row {
			y := 0.0
			if c == gold[i] {
				y = 1
			}
			m.Brier += (float64(q) - y) * (float64(q) - y)
		}
		if gold[i] < 0 {
			m.Brier++
			continue
		}
		known++
		nll -= math.Log(clamp(float64(row[gold[i]])))
	}
	m.ECE, m.Brier, m.NLL = bins.error(), m.Brier/float64(max(1, len(p))), meanOf(nll, known)
	return m
}

// ManyLabels measures probabilities [examples][labels] where any number of labels holds.
func ManyLabels(p [][]float32, gold [][]int) Measures {
	var m Measures
	var bins errorBins
	nll, n := 0.0, 0
	for i, row := range p {
		for c, q := range row {
			holds := slices.Contains(gold[i], c)
			bins.add(float64(q), holds)
			y, right := 0.0, 1-float64(q)
			if holds {
				y, right = 1, float64(q)
			}
			m.Brier += (float64(q) - y) * (float64(q) - y)
			nll -= math.Log(clamp(right))
			n++
		}
	}
	m.ECE, m.Brier, m.NLL = bins.error(), m.Brier/float64(max(1, n)), meanOf(nll, n)
	return m
}

// meanOf returns the mean of n numbers with a sum; nil without any.
func meanOf(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// errorBins collects probabilities in bins: bin b of B has those in (b/B, (b+1)/B], the first 0 too.
type errorBins struct {
	sum, right [Bins]float64
	n          float64
}

func (b *errorBins) add(p float64, right bool) {
	at := min(max(int(math.Ceil(p*Bins))-1, 0), Bins-1)
	b.sum[at] += p
	b.n++
	if right {
		b.right[at]++
	}
}

// error returns Σ_b n_b/n·|right_b/n_b - sum_b/n_b|.
func (b *errorBins) error() float64 {
	e := 0.0
	for at := range b.sum {
		e += math.Abs(b.right[at] - b.sum[at])
	}
	return e / max(1, b.n)
}

// Tops returns the decision of each example for its likeliest label, and whether that is right.
func Tops(p [][]float32, gold []int) []Decision {
	all := make([]Decision, len(p))
	for i, row := range p {
		top := floats.Largest(row)
		all[i] = Decision{row[top], top == gold[i]}
	}
	return all
}
