package nn

import (
	"fmt"
	"math"
)

// ClsPool returns the first token's state of each text, [B D].
func ClsPool(seen Hidden) *Node {
	return GatherRows(seen.States, seen.Rows.Starts[:seen.Rows.Texts()])
}

// MeanPool returns the mean of each text's states, [B D].
func MeanPool(seen Hidden) *Node {
	return sumPerText("mean pool", seen, func(tokens int) float32 { return 1 / float32(tokens) })
}

// sumPerText returns the sum of each text's states, times a factor by the number of its tokens, [B D].
func sumPerText(operation string, seen Hidden, factor func(tokens int) float32) *Node {
	starts, d := textsOf(operation, seen)
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
	}.Apply(seen.States)
}

// MaxPool returns the largest value of each feature over each text's tokens, [B D].
func MaxPool(seen Hidden) *Node {
	starts, d := textsOf("max pool", seen)
	from := make([]int32, (len(starts)-1)*d) // the token each maximum is from: the first of equals
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
	}.Apply(seen.States)
}

// takeLarger takes what is larger in x, which is token t's, into row. What is no number is largest.
func takeLarger(row []float32, source []int32, x []float32, t int32) {
	for j, v := range x {
		if v > row[j] || v != v {
			row[j], source[j] = v, t
		}
	}
}

// AttentionPool is a learned mean of a text's states: softmax(h·q/√D) weighs its tokens.
type AttentionPool struct {
	query *Param // [D 1]
}

// NewAttentionPool makes the parameter "query".
func NewAttentionPool(params Params, width int) *AttentionPool {
	return &AttentionPool{params.Normal("query", 0.02, width, 1)}
}

// Apply returns a state for each text, [B D].
func (a *AttentionPool) Apply(seen Hidden) *Node {
	width := a.query.Shape[0]
	scores := (&Linear{Weight: a.query}).Apply(seen.States)                                   // [T 1]
	weights := SoftmaxPerText(Scale(scores, float32(1/math.Sqrt(float64(width)))), seen.Rows) // [T 1]
	seen.States = ScaleRows(seen.States, weights)                                             // [T D]
	return sumPerText("attention pool", seen, func(int) float32 { return 1 })
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

// textsOf returns where the texts begin, and the width of the states.
func textsOf(operation string, seen Hidden) (starts []int, width int) {
	s := seen.States.Shape()
	if len(s) != 2 || s[0] != seen.Rows.Tokens() {
		panic(fmt.Sprintf("nn: %s of states %v for %d tokens", operation, s, seen.Rows.Tokens()))
	}
	return seen.Rows.Starts, s[1]
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
