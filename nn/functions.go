package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Tanh returns the hyperbolic tangent of each element.
func Tanh(x *Node) *Node {
	return Operation{
		Name: "tanh", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { kernel.Tanh(out, in[0]) },
		Backward: func(_ [][]float32, y, dOut []float32, dIn [][]float32) {
			for i, v := range y {
				dIn[0][i] += dOut[i] * (1 - v*v)
			}
		},
	}.Apply(x)
}

// GELU returns x·Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016), by the error function as in BERT.
func GELU(x *Node) *Node {
	return Operation{
		Name: "GELU", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { kernel.GELU(out, in[0]) },
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			kernel.GELUBackward(dIn[0], in[0], dOut)
		},
	}.Apply(x)
}

// Scale returns x times a constant.
func Scale(x *Node, by float32) *Node {
	return Operation{
		Name: "scale", Shape: x.Shape(),
		Forward:  func(in [][]float32, out []float32) { addScaled(out, in[0], by) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], dOut, by) },
	}.Apply(x)
}

// Sum returns a + b, which have the same shape.
func Sum(a, b *Node) *Node {
	if !a.Shape().Eq(b.Shape()) {
		panic(fmt.Sprintf("nn: sum of %v and %v", a.Shape(), b.Shape()))
	}
	return Operation{
		Name: "sum", Shape: a.Shape(),
		Forward: func(in [][]float32, out []float32) {
			copy(out, in[0])
			add(out, in[1])
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			add(dIn[0], dOut)
			add(dIn[1], dOut)
		},
	}.Apply(a, b)
}

// AddRow adds row [1 D] to each row of x [N D].
func AddRow(x, row *Node) *Node {
	d := row.Shape().TotalSize()
	n := rowsOf("add row", x, d)
	return Operation{
		Name: "add row", Shape: []int{n, d},
		Forward: func(in [][]float32, out []float32) {
			kernel.Repeat(out, in[1])
			kernel.Add(out, in[0])
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			add(dIn[0], dOut)
			if dIn[1] != nil {
				kernel.SumRows(dIn[1], dOut)
			}
		},
	}.Apply(x, row)
}

// ScaleRows multiplies each row of x [N D] by its own factor: factors [N 1].
func ScaleRows(x, factors *Node) *Node {
	n := rowsOf("scale rows", factors, 1)
	d := x.Shape()[1]
	if rowsOf("scale rows", x, d) != n {
		panic(fmt.Sprintf("nn: scale rows %v by %d factors", x.Shape(), n))
	}
	return Operation{
		Name: "scale rows", Shape: []int{n, d},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				addScaled(out[i*d:i*d+d], in[0][i*d:i*d+d], in[1][i])
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range n {
				row := dOut[i*d : i*d+d]
				if dIn[0] != nil {
					addScaled(dIn[0][i*d:i*d+d], row, in[1][i])
				}
				if dIn[1] != nil {
					dIn[1][i] += dot(in[0][i*d:i*d+d], row)
				}
			}
		},
	}.Apply(x, factors)
}

// Sigmoid returns 1/(1 + exp(-x)) of each element.
func Sigmoid(x *Node) *Node { return Between(x, 0, 1) }

// Between returns low + (high-low)·sigmoid(x) of each element.
func Between(x *Node, low, high float32) *Node {
	return Operation{
		Name: "sigmoid", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) {
			for i, v := range in[0] {
				out[i] = low + (high-low)*float32(sigmoid(float64(v)))
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, v := range in[0] {
				s := sigmoid(float64(v))
				dIn[0][i] += dOut[i] * (high - low) * float32(s*(1-s))
			}
		},
	}.Apply(x)
}

// Softplus returns log(1 + exp(x)) + least of each element.
func Softplus(x *Node, least float32) *Node {
	return Operation{
		Name: "softplus", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) {
			for i, v := range in[0] {
				out[i] = least + float32(softplus(float64(v)))
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, v := range in[0] {
				dIn[0][i] += dOut[i] * float32(sigmoid(float64(v)))
			}
		},
	}.Apply(x)
}

// Detach returns x without a gradient: none is passed to x.
func Detach(x *Node) *Node {
	return Operation{
		Name: "detach", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { copy(out, in[0]) },
	}.Apply(x)
}

// GatherRows returns the given rows of x [N D], in their order.
func GatherRows(x *Node, rows []int) *Node {
	s := x.Shape()
	if len(s) != 2 {
		panic(fmt.Sprintf("nn: rows of the shape %v", s))
	}
	n, d := s[0], s[1]
	for _, r := range rows {
		if r < 0 || r >= n {
			panic(fmt.Sprintf("nn: row %d of %d", r, n))
		}
	}
	return Operation{
		Name: "gather rows", Shape: []int{len(rows), d},
		Forward: func(in [][]float32, out []float32) {
			for i, r := range rows {
				copy(out[i*d:i*d+d], in[0][r*d:])
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, r := range rows {
				add(dIn[0][r*d:r*d+d], dOut[i*d:i*d+d])
			}
		},
	}.Apply(x)
}

// MeanOfRows returns the mean of each group's rows of x [N D], [G D]; zeros for an empty group.
func MeanOfRows(x *Node, groups [][]int) *Node {
	d := x.Shape()[1]
	n := rowsOf("mean of rows", x, d)
	for _, group := range groups {
		for _, r := range group {
			if r < 0 || r >= n {
				panic(fmt.Sprintf("nn: mean of row %d of %d", r, n))
			}
		}
	}
	return Operation{
		Name: "mean of rows", Shape: []int{len(groups), d},
		Forward: func(in [][]float32, out []float32) {
			for g, group := range groups {
				for _, r := range group {
					addScaled(out[g*d:(g+1)*d], in[0][r*d:(r+1)*d], 1/float32(len(group)))
				}
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for g, group := range groups {
				for _, r := range group {
					addScaled(dIn[0][r*d:(r+1)*d], dOut[g*d:(g+1)*d], 1/float32(len(group)))
				}
			}
		},
	}.Apply(x)
}

// addScaled adds by times from, of the same length, to to, unless that is nil.
func addScaled(to, from []float32, by float32) {
	for i := range to {
		to[i] += by * from[i]
	}
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// addRows adds the sum of rows, first to last, to sum.
func addRows(sum, rows []float32) {
	for ; len(rows) > 0; rows = rows[len(sum):] {
		add(sum, rows[:len(sum)])
	}
}

// add adds from, of the same length, to to, unless that is nil.
func add(to, from []float32) {
	for i := range to {
		to[i] += from[i]
	}
}

// rowsOf returns the number of rows of x, and panics if they have another width. operation is the caller's name.
func rowsOf(operation string, x *Node, width int) int {
	s := x.Shape()
	if len(s) != 2 || s[1] != width {
		panic(fmt.Sprintf("nn: %s wants rows of %d, has the shape %v", operation, width, s))
	}
	return s[0]
}

// Softmax returns the probabilities exp(x)/Σ exp(x) of one row of logits.
func Softmax(x []float32) []float32 {
	probabilities := slices.Clone(x)
	kernel.Softmax(probabilities)
	return probabilities
}

// logSumExp returns log Σ exp(x/T); the largest x is subtracted first, so that nothing overflows.
func logSumExp(x []float32, temperature float64) float64 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp((float64(v) - float64(top)) / temperature)
	}
	return float64(top)/temperature + math.Log(sum)
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// Sigmoids returns 1/(1 + exp(-x)) of each.
func Sigmoids(x []float32) []float32 {
	probabilities := make([]float32, len(x))
	for i, v := range x {
		probabilities[i] = float32(sigmoid(float64(v)))
	}
	return probabilities
}

// logSumOf returns log Σ exp(term(i)) over n terms.
func logSumOf(n int, term func(i int) float64) float64 {
	terms := make([]float64, n)
	for i := range terms {
		terms[i] = term(i)
	}
	return logSum(terms)
}

// logSum returns log Σ exp(x), -Inf where all x are.
func logSum(x []float64) float64 {
	highest := math.Inf(-1)
	for _, v := range x {
		highest = math.Max(highest, v)
	}
	if math.IsInf(highest, 0) || math.IsNaN(highest) {
		return highest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - highest)
	}
	return highest + math.Log(sum)
}

// LinearCombination returns the scalar Σ factors[i]·nodes[i] of scalars, over those that are not nil; nil if all are.
func LinearCombination(factors []float64, nodes []*Node) *Node {
	factors, nodes = slices.Clone(factors), slices.Clone(nodes)
	for i := len(nodes) - 1; i >= 0; i-- {
		if nodes[i] == nil {
			factors, nodes = slices.Delete(factors, i, i+1), slices.Delete(nodes, i, i+1)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return Operation{
		Name: "weighted sum of losses",
		Forward: func(in [][]float32, out []float32) {
			for i, factor := range factors {
				out[0] += float32(factor) * in[i][0]
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, factor := range factors {
				if dIn[i] != nil {
					dIn[i][0] += float32(factor) * dOut[0]
				}
			}
		},
	}.Apply(nodes...)
}
