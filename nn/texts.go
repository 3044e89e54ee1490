package nn

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Rows describes the rows of packed states [T D], which are the tokens of B texts, one text after the other.
type Rows struct {
	Starts    []int  // [B+1] text b is rows Starts[b]:Starts[b+1]
	Words     []int  // row of the first piece of each word that has one, in the order of texts
	WordIndex []int  // same length: that word's number in its example; the prediction of words without a row is "O"
	WordCount []int  // [B] number of words of the text's example, those without a row included
	Segment   []int8 // [T] 1 in the second text of a pair
	Special   []bool // [T] the token is a special token; by default the first and the last of each text are
	Types     []int8 // [T] token types, which encoders read; by default those of Segment
	// [B] the text's example; an example has several texts where it is long, or a pair that is encoded separately
	Example []int
	Second  []bool // [B] the text is the second of a pair that is encoded separately
	Hidden  []int  // rows of the hidden tokens that are predicted, ascending
}

// Texts returns B.
func (r Rows) Texts() int { return len(r.Starts) - 1 }

// Tokens returns T.
func (r Rows) Tokens() int { return r.Starts[len(r.Starts)-1] }

// TokenTypes returns the token types [T] that an encoder reads.
func (r Rows) TokenTypes() []int8 {
	if r.Types != nil {
		return r.Types
	}
	return r.Segment
}

// Hidden is the hidden states of a batch, which fusions and heads read.
type Hidden struct {
	States *Node   // [T D]
	Layers []*Node // [T D] each, first to last; only when the fusion requires them
	Rows   Rows
}

// LayerSet selects the layers whose states an encoder returns.
type LayerSet int

const (
	LastLayer LayerSet = iota // the last layer's alone
	AllLayers                 // all that the encoder has, first to last
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

// EmitPerText emits the values of n [T 1] under name, text by text, once they are computed.
func (p *Pass) EmitPerText(name string, n *Node, rows Rows) {
	if !p.Observed(name) {
		return
	}
	Operation{
		Name: "emit " + name,
		Forward: func(in [][]float32, _ []float32) {
			for b := range rows.Texts() {
				text := in[0][rows.Starts[b]:rows.Starts[b+1]]
				p.Emit(name, b, []int{len(text)}, text)
			}
		},
	}.Apply(n) // nothing reads it
}

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

// textsOf returns the first rows of the texts, and the width of the states.
func textsOf(operation string, hidden Hidden) (starts []int, width int) {
	s := hidden.States.Shape()
	if len(s) != 2 || s[0] != hidden.Rows.Tokens() {
		panic(fmt.Sprintf("nn: %s of states %v for %d tokens", operation, s, hidden.Rows.Tokens()))
	}
	return hidden.Rows.Starts, s[1]
}
