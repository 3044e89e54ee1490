package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// SoftmaxPerText returns the softmax of logits [T 1] over the tokens of each text.
func SoftmaxPerText(logits *Node, rows Rows) *Node {
	if s := logits.Shape(); len(s) != 2 || s[0] != rows.Tokens() || s[1] != 1 {
		panic(fmt.Sprintf("nn: softmax per text of logits %v for %d tokens", s, rows.Tokens()))
	}
	starts := rows.Starts
	return Operation{
		Name: "softmax per text", Shape: []int{rows.Tokens(), 1},
		Forward: func(in [][]float32, out []float32) {
			for b := range rows.Texts() {
				text := out[starts[b]:starts[b+1]]
				copy(text, in[0][starts[b]:starts[b+1]])
				kernel.Softmax(text)
			}
		},
		// dx = y·(dy - Σ y·dy)
		Backward: func(_ [][]float32, out, dOut []float32, dIn [][]float32) {
			for b := range rows.Texts() {
				y, dy, dx := out[starts[b]:starts[b+1]], dOut[starts[b]:starts[b+1]], dIn[0][starts[b]:starts[b+1]]
				mean := dot(y, dy)
				for i := range dx {
					dx[i] += y[i] * (dy[i] - mean)
				}
			}
		},
	}.Apply(logits)
}

// KeepPerText passes the values of n [T 1] to the watchers of name, text by text, once they are computed.
func (p *Pass) KeepPerText(name string, n *Node, rows Rows) {
	if !p.Observed(name) {
		return
	}
	Operation{
		Name: "keep " + name,
		Forward: func(in [][]float32, _ []float32) {
			for b := range rows.Texts() {
				text := in[0][rows.Starts[b]:rows.Starts[b+1]]
				p.Emit(name, b, []int{len(text)}, text)
			}
		},
	}.Apply(n) // nothing reads it
}

// Softmax returns the probabilities exp(x)/Σ exp(x) of one row of logits.
func Softmax(x []float32) []float32 {
	probabilities := slices.Clone(x)
	kernel.Softmax(probabilities)
	return probabilities
}

// logSumExp returns log Σ exp(x); the largest x is subtracted first, so that nothing overflows.
func logSumExp(x []float32) float64 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - float64(top))
	}
	return float64(top) + math.Log(sum)
}

// TimesLength multiplies x [T 1] by the number of tokens of the text that each element belongs to.
func TimesLength(x *Node, rows Rows) *Node {
	starts := rows.Starts
	rowsOf("times length", x, 1)
	scale := func(to, from []float32) {
		for b := range rows.Texts() {
			addScaled(to[starts[b]:starts[b+1]], from[starts[b]:starts[b+1]], float32(starts[b+1]-starts[b]))
		}
	}
	return Operation{
		Name: "times length", Shape: x.Shape(),
		Forward:  func(in [][]float32, out []float32) { scale(out, in[0]) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { scale(dIn[0], dOut) },
	}.Apply(x)
}
