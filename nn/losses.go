package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// LabelLoss holds the options of the loss of labels; its zero value is plain cross entropy.
type LabelLoss struct {
	// Smoothing is ε: the gold label has the target probability 1-ε, and ε is divided evenly among all labels (Szegedy
	// et al. 2016, "Rethinking the Inception Architecture", section 7).
	Smoothing float64
	// Gamma is γ: each label's term is multiplied by (1-p)^γ, p its probability (Lin et al. 2017, "Focal Loss",
	// equation 4).
	Gamma float64
	// Weights multiply each label's term, [C], if there are any.
	Weights []float32
	// Rows multiply each row's loss, [N], if there are any.
	Rows []float32
}

// factor returns factors[i], 1 where there are none.
func factor(factors []float32, i int) float32 {
	if factors == nil {
		return 1
	}
	return factors[i]
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
					by := float64(factor(l.Rows, i) * factor(l.Weights, label))
					sum += by * (logSumExp(row, 1) - float64(row[label]))
				} else {
					sum += float64(factor(l.Rows, i)) * l.value(row, label)
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, label := range gold {
				if label < 0 {
					continue
				}
				row, d := in[0][i*c:i*c+c], dIn[0][i*c:i*c+c]
				if !plain {
					l.backward(d, row, label, dOut[0]*factor(l.Rows, i))
					continue
				}
				by := dOut[0] * factor(l.Rows, i) * factor(l.Weights, label)
				total := logSumExp(row, 1)
				for j, x := range row {
					d[j] += by * float32(math.Exp(float64(x)-total))
				}
				d[label] -= by
			}
		},
	}.Apply(logits)
}

func (l LabelLoss) value(logits []float32, gold int) float64 {
	total, sum := logSumExp(logits, 1), 0.0
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
	return target * float64(factor(l.Weights, c))
}

// backward adds by times the gradient of value at the logits to d: with g_c = q_c·w_c·p_c·df/dp_c of the term
// f(p) = -(1-p)^γ·log p it is g_k - p_k·Σ_c g_c.
func (l LabelLoss) backward(d, logits []float32, gold int, by float32) {
	total, sum := logSumExp(logits, 1), 0.0
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

// BinaryCrossEntropy returns the sum over logits [N L] of each one's binary cross entropy, a scalar: -log σ(s) where
// gold [N·L] is above 0, -log(1-σ(s)) where it is 0, nothing where it is below. Weights multiply the terms of positive
// labels, (1-p)^γ all terms, p being the gold label's probability; there is no smoothing.
func (l LabelLoss) BinaryCrossEntropy(logits *Node, gold []int8) *Node {
	shape := logits.Shape()
	if len(shape) != 2 || shape[0]*shape[1] != len(gold) || l.Smoothing != 0 {
		panic(fmt.Sprintf("nn: binary cross entropy of logits %v and %d labels, smoothed by %v", shape, len(gold),
			l.Smoothing))
	}
	labels := shape[1]
	l.check("binary cross entropy", shape[0], labels)
	factorOf := func(i int) float64 {
		by := float64(factor(l.Rows, i/labels))
		if gold[i] > 0 {
			by *= float64(factor(l.Weights, i%labels))
		}
		return by
	}
	return Operation{
		Name: "binary cross entropy",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, s := range in[0] {
				if gold[i] >= 0 {
					t := towards(s, gold[i])
					sum += factorOf(i) * math.Pow(sigmoid(-t), l.Gamma) * softplus(-t)
				}
			}
			out[0] = float32(sum)
		},
		// with t = ±s of f(t) = σ(-t)^γ·softplus(-t): f' = -σ(-t)^γ·(γ·σ(t)·softplus(-t) + σ(-t))
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, s := range in[0] {
				if gold[i] < 0 {
					continue
				}
				t := towards(s, gold[i])
				slope := -math.Pow(sigmoid(-t), l.Gamma) * (l.Gamma*sigmoid(t)*softplus(-t) + sigmoid(-t))
				dIn[0][i] += dOut[0] * float32(factorOf(i)*towards(float32(slope), gold[i]))
			}
		},
	}.Apply(logits)
}

// towards returns s where gold is positive, -s where it is not.
func towards(s float32, gold int8) float64 {
	if gold > 0 {
		return float64(s)
	}
	return -float64(s)
}

// Distance is the loss of a number as a function of its difference d from the gold number, and its slope.
type Distance struct {
	Of, Slope func(d float64) float64
}

// Distances are the losses of a number by name: mse d², mae |d|, and huber (Huber 1964), which is d²/2 for |d| < 1,
// else |d| - 1/2.
var Distances = map[string]Distance{
	"mse": {
		func(d float64) float64 { return d * d },
		func(d float64) float64 { return 2 * d },
	},
	"mae": {
		math.Abs,
		sign,
	},
	"huber": {
		func(d float64) float64 {
			if math.Abs(d) < 1 {
				return d * d / 2
			}
			return math.Abs(d) - 0.5
		},
		func(d float64) float64 { return max(-1, min(1, d)) },
	},
}

// sign returns -1, 0 or 1, and NaN for NaN.
func sign(d float64) float64 {
	switch {
	case d > 0:
		return 1
	case d < 0:
		return -1
	}
	return d
}

// NumberLoss returns the sum of the distances between x [N 1] and gold [N], each times its factor of rows [N], a
// scalar. Where the factor is 0 there is no gold number.
func NumberLoss(x *Node, gold, rows []float32, distance Distance) *Node {
	if n := rowsOf("number loss", x, 1); n != len(gold) || n != len(rows) {
		panic(fmt.Sprintf("nn: number loss of %d rows, %d numbers and %d factors", n, len(gold), len(rows)))
	}
	return Operation{
		Name: "number loss",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, by := range rows {
				if by != 0 {
					sum += float64(by) * distance.Of(float64(in[0][i])-float64(gold[i]))
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, by := range rows {
				if by != 0 {
					dIn[0][i] += dOut[0] * by * float32(distance.Slope(float64(in[0][i])-float64(gold[i])))
				}
			}
		},
	}.Apply(x)
}

// SpanLoss returns the sum over texts of the mean of -log p(start) and -log p(end), a scalar: logits [T 2] of each
// token as the start and as the end of a span, allowed [T] the tokens that can be either, gold [B][2] the first and the
// last token of the span as rows. A text whose gold is negative adds nothing.
func SpanLoss(logits *Node, allowed []bool, gold [][2]int, rows Rows) *Node {
	if n := rowsOf("span loss", logits, 2); n != rows.Tokens() || n != len(allowed) || len(gold) != rows.Texts() {
		panic(fmt.Sprintf("nn: span loss of %d rows, %d flags and %d spans for %d tokens and %d texts", n,
			len(allowed), len(gold), rows.Tokens(), rows.Texts()))
	}
	for b, span := range gold {
		for _, row := range span {
			if row >= 0 && (row < rows.Starts[b] || row >= rows.Starts[b+1] || !allowed[row]) {
				panic(fmt.Sprintf("nn: span loss of row %d, which is outside text %d or is not allowed", row, b))
			}
		}
	}
	return Operation{
		Name: "span loss",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for b, span := range gold {
				for side, row := range span {
					if row >= 0 {
						sum += (logSumSide(in[0], allowed, rows.Starts[b], rows.Starts[b+1],
							side) - float64(in[0][2*row+side])) / 2
					}
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for b, span := range gold {
				for side, row := range span {
					if row < 0 {
						continue
					}
					total := logSumSide(in[0], allowed, rows.Starts[b], rows.Starts[b+1], side)
					for t := rows.Starts[b]; t < rows.Starts[b+1]; t++ {
						if allowed[t] {
							dIn[0][2*t+side] += dOut[0] / 2 * float32(math.Exp(float64(in[0][2*t+side])-total))
						}
					}
					dIn[0][2*row+side] -= dOut[0] / 2
				}
			}
		},
	}.Apply(logits)
}

// logSumSide returns log Σ exp of one side's logits over the allowed tokens of from:to.
func logSumSide(logits []float32, allowed []bool, from, to, side int) float64 {
	var x []float32
	for t := from; t < to; t++ {
		if allowed[t] {
			x = append(x, logits[2*t+side])
		}
	}
	return logSumExp(x, 1)
}

// SquaredError returns the mean over columns of (x-y)² for each row, [N 1]: x and y [N D].
func SquaredError(x, y *Node) *Node {
	d := x.Shape()[1]
	n := rowsOf("squared error", y, d)
	if rowsOf("squared error", x, d) != n {
		panic(fmt.Sprintf("nn: squared error of %v and %v", x.Shape(), y.Shape()))
	}
	return Operation{
		Name: "squared error", Shape: []int{n, 1},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				sum := float32(0)
				for j := i * d; j < (i+1)*d; j++ {
					sum += (in[0][j] - in[1][j]) * (in[0][j] - in[1][j])
				}
				out[i] = sum / float32(d)
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range n {
				by := 2 * dOut[i] / float32(d)
				for j := i * d; j < (i+1)*d; j++ {
					difference := by * (in[0][j] - in[1][j])
					if dIn[0] != nil {
						dIn[0][j] += difference
					}
					if dIn[1] != nil {
						dIn[1][j] -= difference
					}
				}
			}
		},
	}.Apply(x, y)
}

// WeightedSum returns the sum of the rows of x [N 1], each times its factor, a scalar. Rows whose factor is 0 are left
// out, NaN included.
func WeightedSum(x *Node, factors []float32) *Node {
	if n := rowsOf("weighted sum", x, 1); n != len(factors) {
		panic(fmt.Sprintf("nn: weighted sum of %d rows with %d factors", n, len(factors)))
	}
	return Operation{
		Name: "weighted sum",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, by := range factors {
				if by != 0 {
					sum += float64(by) * float64(in[0][i])
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			addScaled(dIn[0], factors, dOut[0])
		},
	}.Apply(x)
}

// leastNorm is the lower bound of a vector's norm in a cosine, as in PyTorch.
const leastNorm = 1e-8

// Cosine returns a·b/(|a|·|b|) of each row of a and b [N D], [N 1].
func Cosine(a, b *Node) *Node {
	d := a.Shape()[1]
	n := rowsOf("cosine", a, d)
	if rowsOf("cosine", b, d) != n {
		panic(fmt.Sprintf("nn: cosine of %v and %v", a.Shape(), b.Shape()))
	}
	norm := func(x []float32) float64 { return max(leastNorm, math.Sqrt(float64(dot(x, x)))) }
	return Operation{
		Name: "cosine", Shape: []int{n, 1},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				x, y := in[0][i*d:(i+1)*d], in[1][i*d:(i+1)*d]
				out[i] = float32(float64(dot(x, y)) / (norm(x) * norm(y)))
			}
		},
		// d cos/da = b/(|a|·|b|) - cos·a/|a|²
		Backward: func(in [][]float32, out, dOut []float32, dIn [][]float32) {
			for i := range n {
				x, y := in[0][i*d:(i+1)*d], in[1][i*d:(i+1)*d]
				nx, ny := norm(x), norm(y)
				for side, v := range [2][]float32{x, y} {
					if dIn[side] == nil {
						continue
					}
					own, other := nx, y
					if side == 1 {
						own, other = ny, x
					}
					row := dIn[side][i*d : (i+1)*d]
					addScaled(row, other, dOut[i]*float32(1/(nx*ny)))
					addScaled(row, v, -dOut[i]*float32(float64(out[i])/(own*own)))
				}
			}
		},
	}.Apply(a, b)
}

// CoSENT returns N·log(1 + Σ exp(scale·(s_i - s_j))) over the pairs of rows with gold_i < gold_j, a scalar:
// similarities [N 1], gold [N]. A row whose gold is NaN is left out; N is the number of the others (Su 2022, "CoSENT").
// It compares rows with each other, so that, unlike other losses, it is not a sum over rows.
func CoSENT(similarities *Node, gold []float64, scale float64) *Node {
	if n := rowsOf("CoSENT", similarities, 1); n != len(gold) {
		panic(fmt.Sprintf("nn: CoSENT of %d rows and %d numbers", n, len(gold)))
	}
	var order []int // rows by ascending gold
	for i, g := range gold {
		if !math.IsNaN(g) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(gold[i], gold[j]) })
	terms := func(s []float32, visit func(low, high int, x float64)) {
		for k, high := range order {
			for _, low := range order[:k] {
				if gold[low] < gold[high] {
					visit(low, high, scale*(float64(s[low])-float64(s[high])))
				}
			}
		}
	}
	total := func(s []float32) float64 { // log(1 + Σ exp)
		all := []float64{0}
		terms(s, func(_, _ int, x float64) { all = append(all, x) })
		return logSum(all)
	}
	return Operation{
		Name:    "CoSENT",
		Forward: func(in [][]float32, out []float32) { out[0] = float32(float64(len(order)) * total(in[0])) },
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			sum := total(in[0])
			terms(in[0], func(low, high int, x float64) {
				d := dOut[0] * float32(float64(len(order))*scale*math.Exp(x-sum))
				dIn[0][low] += d
				dIn[0][high] -= d
			})
		},
	}.Apply(similarities)
}
