package nn

import (
	"fmt"
	"math"
)

// ClsPool returns the first token's state of each text, [B D].
func ClsPool(hidden Hidden) *Node {
	return GatherRows(hidden.States, hidden.Rows.Starts[:hidden.Rows.Texts()])
}

// MeanPool returns the mean of each text's states, [B D].
func MeanPool(hidden Hidden) *Node {
	return sumPerText("mean pool", hidden, func(tokens int) float32 { return 1 / float32(tokens) })
}

// sumPerText returns the sum of each text's states, times a factor that is a function of its number of tokens, [B D].
func sumPerText(operation string, hidden Hidden, factor func(tokens int) float32) *Node {
	starts, d := textsOf(operation, hidden)
	return Operation{
		Name: operation, Shape: []int{len(starts) - 1, d},
		Forward: func(in [][]float32, out []float32) {
			for b := range len(starts) - 1 {
				row := out[b*d : b*d+d]
				addRows(row, in[0][starts[b]*d:starts[b+1]*d])
				for j := range row {
					row[j] *= factor(starts[b+1] - starts[b])
				}
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for b := range len(starts) - 1 {
				for t := starts[b]; t < starts[b+1]; t++ {
					addScaled(dIn[0][t*d:t*d+d], dOut[b*d:b*d+d], factor(starts[b+1]-starts[b]))
				}
			}
		},
	}.Apply(hidden.States)
}

// MaxPool returns the largest value of each feature over each text's tokens, [B D].
func MaxPool(hidden Hidden) *Node {
	starts, d := textsOf("max pool", hidden)
	from := make([]int32, (len(starts)-1)*d) // the token of each maximum, the first of equal ones
	return Operation{
		Name: "max pool", Shape: []int{len(starts) - 1, d},
		Forward: func(in [][]float32, out []float32) {
			for b := range len(starts) - 1 {
				row, source := out[b*d:b*d+d], from[b*d:b*d+d]
				copy(row, in[0][starts[b]*d:])
				for j := range source {
					source[j] = int32(starts[b])
				}
				for t := starts[b] + 1; t < starts[b+1]; t++ {
					takeLarger(row, source, in[0][t*d:t*d+d], int32(t))
				}
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, t := range from {
				dIn[0][int(t)*d+i%d] += dOut[i]
			}
		},
	}.Apply(hidden.States)
}

// takeLarger sets row to the maximum of row and x, the values of token t. NaN counts as largest.
func takeLarger(row []float32, source []int32, x []float32, t int32) {
	for j, v := range x {
		if v > row[j] || v != v {
			row[j], source[j] = v, t
		}
	}
}

// AttentionPool is a learned weighted mean of a text's states, with the weights softmax(h·q/√D).
type AttentionPool struct {
	query *Param // [D 1]
}

// NewAttentionPool makes the parameter "query".
func NewAttentionPool(params Params, width int) *AttentionPool {
	return &AttentionPool{params.Normal("query", 0.02, width, 1)}
}

// Apply returns a state for each text, [B D].
func (a *AttentionPool) Apply(hidden Hidden) *Node {
	width := a.query.Shape[0]
	logits := (&Linear{Weight: a.query}).Apply(hidden.States)                                   // [T 1]
	weights := SoftmaxPerText(Scale(logits, float32(1/math.Sqrt(float64(width)))), hidden.Rows) // [T 1]
	hidden.States = ScaleRows(hidden.States, weights)                                           // [T D]
	return sumPerText("attention pool", hidden, func(int) float32 { return 1 })
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

// textsOf returns the first rows of the texts, and the width of the states.
func textsOf(operation string, hidden Hidden) (starts []int, width int) {
	s := hidden.States.Shape()
	if len(s) != 2 || s[0] != hidden.Rows.Tokens() {
		panic(fmt.Sprintf("nn: %s of states %v for %d tokens", operation, s, hidden.Rows.Tokens()))
	}
	return hidden.Rows.Starts, s[1]
}

func addScaled(to, from []float32, by float32) {
	for i, x := range from {
		to[i] += by * x
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
