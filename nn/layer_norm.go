package nn

import "github.com/jenga-nlp/jenga/internal/kernel"

// LayerNorm is γ·(x - mean)/√(variance + ε) + β over each row (Ba et al. 2016).
type LayerNorm struct {
	Weight, Bias *Param // γ and β, [D]
	epsilon      float64
}

// NewLayerNorm makes the parameters "weight", one, and "bias", zero.
func NewLayerNorm(params Params, width int, epsilon float64) *LayerNorm {
	return &LayerNorm{Weight: params.Ones("weight", width), Bias: params.Zeros("bias", width), epsilon: epsilon}
}

// Apply normalises rows [N D].
func (l *LayerNorm) Apply(x *Node) *Node {
	d := l.Weight.Shape[0]
	n := rowsOf("layer norm", x, d)
	stats := make([]float32, 2*n) // of each row, from forward to backward
	return Operation{
		Name: "layer norm", Shape: []int{n, d}, Params: []*Param{l.Weight, l.Bias},
		Forward: func(in [][]float32, out []float32) {
			kernel.LayerNorm(out, stats, in[0], in[1], in[2], l.epsilon)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			kernel.LayerNormBackward(dIn[0], dIn[1], dIn[2], stats, in[0], in[1], dOut)
		},
	}.Apply(x)
}
