package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Linear is x·W + b.
type Linear struct {
	Weight *Param // [in out]
	Bias   *Param // [out], nil for none
}

// NewLinear makes the parameters "weight", from normal(0, 0.02), and "bias", zero.
func NewLinear(params Params, in, out int) *Linear {
	return &Linear{Weight: params.Normal("weight", 0.02, in, out), Bias: params.Zeros("bias", out)}
}

// Apply maps rows [N in] to rows [N out].
func (l *Linear) Apply(x *Node) *Node {
	in, out := l.Weight.Shape[0], l.Weight.Shape[1]
	rows := rowsOf("linear", x, in)
	params := []*Param{l.Weight}
	if l.Bias != nil {
		params = append(params, l.Bias)
	}
	return Operation{
		Name: "linear", Shape: []int{rows, out}, Params: params,
		Forward: func(v [][]float32, y []float32) {
			if len(v) > 2 {
				kernel.Repeat(y, v[2])
			}
			kernel.MatMul(y, v[0], v[1], rows, in, out)
		},
		Backward: func(v [][]float32, _, dy []float32, d [][]float32) {
			if d[0] != nil {
				kernel.MatMulBT(d[0], dy, v[1], rows, out, in)
			}
			if d[1] != nil {
				kernel.MatMulAT(d[1], v[0], dy, in, rows, out)
			}
			if len(d) > 2 && d[2] != nil {
				kernel.SumRows(d[2], dy)
			}
		},
	}.Apply(x)
}

// TiedLinear is x·Wᵀ + b, its weight a table of embeddings that another part shares (Press & Wolf 2017).
type TiedLinear struct {
	Weight *Param // [V D]
	Bias   *Param // [V]
}

// Apply maps rows [N D] to logits [N V].
func (l *TiedLinear) Apply(x *Node) *Node {
	v, d := l.Weight.Shape[0], l.Weight.Shape[1]
	rows := rowsOf("tied logits", x, d)
	return Operation{
		Name: "tied logits", Shape: []int{rows, v}, Params: []*Param{l.Weight, l.Bias},
		Forward: func(in [][]float32, y []float32) {
			kernel.Repeat(y, in[2])
			kernel.MatMulBT(y, in[0], in[1], rows, d, v)
		},
		Backward: func(in [][]float32, _, dy []float32, dIn [][]float32) {
			if dIn[0] != nil {
				kernel.MatMul(dIn[0], dy, in[1], rows, v, d)
			}
			if dIn[1] != nil {
				kernel.MatMulAT(dIn[1], dy, in[0], v, rows, d)
			}
			if dIn[2] != nil {
				kernel.SumRows(dIn[2], dy)
			}
		},
	}.Apply(x)
}

// rowsOf returns the number of rows of x, and panics if they have another width. operation is the caller's name.
func rowsOf(operation string, x *Node, width int) int {
	s := x.Shape()
	if len(s) != 2 || s[1] != width {
		panic(fmt.Sprintf("nn: %s wants rows of %d, has the shape %v", operation, width, s))
	}
	return s[0]
}
