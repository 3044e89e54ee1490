package nn

import (
	"fmt"
	"math"
)

// LabelLoss holds the options of the loss of labels; its zero value is plain cross entropy.
type LabelLoss struct {
	// Smoothing is ε: the gold label has the target probability 1-ε, and ε is divided evenly among all labels (Szegedy
	// et al. 2016, "Rethinking the Inception Architecture", section 7).
	Smoothing float64
	// Gamma is γ: each label's term is multiplied by (1-p)^γ, p its probability (Lin et al. 2017, "Focal Loss",
	// equation 4).
	Gamma float64
	// Weights multiply each label's term, [C]; nil: 1 each.
	Weights []float32
	// Rows multiply each row's loss, [N]; nil: 1 each.
	Rows []float32
}

// row returns the factor of row i.
func (l LabelLoss) row(i int) float32 {
	if l.Rows == nil {
		return 1
	}
	return l.Rows[i]
}

// weight returns the factor of label c.
func (l LabelLoss) weight(c int) float32 {
	if l.Weights == nil {
		return 1
	}
	return l.Weights[c]
}

func (l LabelLoss) check(operation string, rows, labels int) {
	if l.Rows != nil && len(l.Rows) != rows || l.Weights != nil && len(l.Weights) != labels {
		panic(fmt.Sprintf("nn: %s of %d rows and %d labels with %d and %d factors", operation, rows, labels,
			len(l.Rows), len(l.Weights)))
	}
}

// CrossEntropy returns the sum over rows of -log softmax(logits)[gold], a scalar: logits [N C], gold [N]. Rows whose
// gold is negative have no label and add nothing.
func CrossEntropy(logits *Node, gold []int) *Node { return LabelLoss{}.CrossEntropy(logits, gold) }

// CrossEntropy returns the sum over rows of Σ_c q_c·w_c·(1-p_c)^γ·(-log p_c), a scalar: p = softmax(logits), q the
// target probabilities, w the labels' weights. Otherwise it is as the function CrossEntropy.
func (l LabelLoss) CrossEntropy(logits *Node, gold []int) *Node {
	shape := logits.Shape()
	if len(shape) != 2 || shape[0] != len(gold) {
		panic(fmt.Sprintf("nn: cross entropy of logits %v and %d labels", shape, len(gold)))
	}
	c := shape[1]
	for _, label := range gold {
		if label >= c {
			panic(fmt.Sprintf("nn: cross entropy of label %d of %d", label, c))
		}
	}
	l.check("cross entropy", len(gold), c)
	plain := l.Smoothing == 0 && l.Gamma == 0
	return Operation{
		Name: "cross entropy",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, label := range gold {
				if label < 0 {
					continue
				}
				row := in[0][i*c : i*c+c]
				if plain {
					sum += float64(l.row(i)*l.weight(label)) * (logSumExp(row) - float64(row[label]))
				} else {
					sum += float64(l.row(i)) * l.value(row, label)
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, label := range gold {
				if label < 0 || dIn[0] == nil {
					continue
				}
				row, d := in[0][i*c:i*c+c], dIn[0][i*c:i*c+c]
				if !plain {
					l.backward(d, row, label, dOut[0]*l.row(i))
					continue
				}
				by := dOut[0] * l.row(i) * l.weight(label)
				total := logSumExp(row)
				for j, x := range row {
					d[j] += by * float32(math.Exp(float64(x)-total))
				}
				d[label] -= by
			}
		},
	}.Apply(logits)
}

// value returns the loss of a row of logits with a gold label.
func (l LabelLoss) value(logits []float32, gold int) float64 {
	total, sum := logSumExp(logits), 0.0
	for c, x := range logits {
		if target := l.target(c, gold, len(logits)); target != 0 {
			logP := float64(x) - total
			sum -= target * math.Pow(-math.Expm1(logP), l.Gamma) * logP
		}
	}
	return sum
}

// target returns q_c·w_c.
func (l LabelLoss) target(c, gold, labels int) float64 {
	target := l.Smoothing / float64(labels)
	if c == gold {
		target += 1 - l.Smoothing
	}
	return target * float64(l.weight(c))
}

// backward adds by times the gradient of value at the logits to d: with g_c = q_c·w_c·p_c·df/dp_c of the term
// f(p) = -(1-p)^γ·log p it is g_k - p_k·Σ_c g_c.
func (l LabelLoss) backward(d, logits []float32, gold int, by float32) {
	total, sum := logSumExp(logits), 0.0
	for c, x := range logits {
		target := l.target(c, gold, len(logits))
		if target == 0 {
			continue
		}
		logP := float64(x) - total
		p, rest := math.Exp(logP), -math.Expm1(logP)
		g := -math.Pow(rest, l.Gamma)
		if l.Gamma != 0 && rest > 0 {
			g += l.Gamma * p * math.Pow(rest, l.Gamma-1) * logP
		}
		g *= target
		sum += g
		d[c] += by * float32(g)
	}
	for c, x := range logits {
		d[c] -= by * float32(math.Exp(float64(x)-total)*sum)
	}
}
