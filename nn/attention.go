package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Attention returns softmax(Q·Kᵀ/√d)·V of each text over its own rows, for each of the heads, which divide the columns
// evenly, d each: q, k and v [T D] (Vaswani et al. 2017, equation 1). Its memory grows with the length of a text, not
// with its square.
func Attention(p *Pass, q, k, v *Node, rows Rows, heads int) *Node {
	tokens, width := rows.Tokens(), q.Shape()[1]
	for _, x := range []*Node{q, k, v} {
		if n := rowsOf("attention", x, width); n != tokens {
			panic(fmt.Sprintf("nn: attention of %d rows for %d tokens", n, tokens))
		}
	}
	if heads < 1 || width%heads != 0 {
		panic(fmt.Sprintf("nn: attention of width %d with %d heads", width, heads))
	}
	attention := kernel.Attention{Starts: rows.Starts, Heads: heads, Width: width}
	normalizers := make([]float32, heads*tokens)
	return Operation{
		Name: "attention", Shape: []int{tokens, width},
		Forward: func(in [][]float32, out []float32) {
			attention.Forward(out, normalizers, in[0], in[1], in[2])
		},
		Backward: func(in [][]float32, out, dOut []float32, dIn [][]float32) {
			var d [3][]float32
			for i := range d {
				d[i] = p.Scratch(len(out))
			}
			attention.Backward(d[0], d[1], d[2], in[0], in[1], in[2], out, normalizers, dOut)
			for i := range d {
				if dIn[i] != nil {
					kernel.Add(dIn[i], d[i])
				}
			}
		},
	}.Apply(q, k, v)
}

// MultiHead is Concat(head_1 … head_h)·W_O with head_i = Attention(x·W_Qi, x·W_Ki, x·W_Vi) (Vaswani et al. 2017,
// section 3.2.2), of each text over its own rows.
type MultiHead struct {
	Query, Key, Value, Out *Linear
	heads                  int
}

// NewMultiHead makes four linear layers, "query", "key", "value" and "out". The number of heads divides the width.
func NewMultiHead(params Params, width, heads int) *MultiHead {
	return &MultiHead{
		Query: NewLinear(params.In("query"), width, width), Key: NewLinear(params.In("key"), width, width),
		Value: NewLinear(params.In("value"), width, width), Out: NewLinear(params.In("out"), width, width),
		heads: heads,
	}
}

// Apply maps states [T D] to [T D].
func (m *MultiHead) Apply(p *Pass, x *Node, rows Rows) *Node {
	q, k, v := m.Query.Apply(x), m.Key.Apply(x), m.Value.Apply(x) // [T D] each
	return m.Out.Apply(Attention(p, q, k, v, rows, m.heads))
}
