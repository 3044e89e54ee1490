package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Linear is x·W + b, or with Tied x·Wᵀ + b.
type Linear struct {
	Weight *Param // [in out]
	Bias   *Param // [out], nil for none
	// Tied says that Weight [out in] is a table of embeddings that another part shares (Press & Wolf 2017).
	Tied bool
}

// NewLinear makes the parameters "weight", from normal(0, 0.02), and "bias", zero.
func NewLinear(params Params, in, out int) *Linear {
	return &Linear{Weight: params.Normal("weight", 0.02, in, out), Bias: params.Zeros("bias", out)}
}

// Apply maps rows [N in] to rows [N out].
func (l *Linear) Apply(x *Node) *Node {
	in, out := l.Weight.Shape[0], l.Weight.Shape[1]
	if l.Tied {
		in, out = out, in
	}
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
			if l.Tied {
				kernel.MatMulBT(y, v[0], v[1], rows, in, out)
			} else {
				kernel.MatMul(y, v[0], v[1], rows, in, out)
			}
		},
		Backward: func(v [][]float32, _, dy []float32, d [][]float32) {
			switch {
			case d[0] != nil && l.Tied:
				kernel.MatMul(d[0], dy, v[1], rows, out, in)
			case d[0] != nil:
				kernel.MatMulBT(d[0], dy, v[1], rows, out, in)
			}
			switch {
			case d[1] != nil && l.Tied:
				kernel.MatMulAT(d[1], dy, v[0], out, rows, in)
			case d[1] != nil:
				kernel.MatMulAT(d[1], v[0], dy, in, rows, out)
			}
			if len(d) > 2 && d[2] != nil {
				kernel.SumRows(d[2], dy)
			}
		},
	}.Apply(x)
}

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

// Dropout sets elements of its input to zero with a probability in training and scales the others, so that the mean
// stays the same.
type Dropout struct {
	place string
	rate  float64
}

// NewDropout makes a dropout whose mask is a function of the path of params, the seed and the step. Two dropouts of one
// path have the same mask.
func NewDropout(params Params, rate float64) Dropout {
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Sprintf("nn: dropout of %v at %s", rate, params.Path()))
	}
	return Dropout{params.Path(), rate}
}

// Apply drops elements of x in training; else it returns x.
func (d Dropout) Apply(p *Pass, x *Node) *Node {
	if !p.Training || d.rate == 0 {
		return x
	}
	key := p.Key(d.place)
	return Operation{
		Name: "dropout", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { kernel.Dropout(out, in[0], key, d.rate) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			kernel.DropoutBackward(dIn[0], dOut, key, d.rate)
		},
	}.Apply(x)
}

// LayerMix is γ·Σ_l softmax(w)_l·x_l over states of one shape (ScalarMix, Peters et al. 2018).
type LayerMix struct {
	weights *Param // w [L]
	scale   *Param // γ [1]
}

// NewLayerMix makes the parameters "weights", zero, which is a plain mean, and "scale", one.
func NewLayerMix(params Params, layers int) *LayerMix {
	return &LayerMix{params.Zeros("weights", layers), params.Ones("scale", 1)}
}

// Weights returns softmax(w).
func (m *LayerMix) Weights() []float32 { return Softmax(m.weights.Data) }

// Apply mixes as many layers as the mix has weights.
func (m *LayerMix) Apply(layers ...*Node) *Node {
	if len(layers) != m.weights.Shape[0] {
		panic(fmt.Sprintf("nn: mix of %d layers by %d weights", len(layers), m.weights.Shape[0]))
	}
	for _, x := range layers[1:] {
		if !x.Shape().Eq(layers[0].Shape()) {
			panic(fmt.Sprintf("nn: mix of layers %v and %v", layers[0].Shape(), x.Shape()))
		}
	}
	n := len(layers)
	return Operation{
		Name: "layer mix", Shape: layers[0].Shape(), Params: []*Param{m.weights, m.scale},
		Forward: func(in [][]float32, out []float32) {
			for l, weight := range Softmax(in[n]) {
				addScaled(out, in[l], weight*in[n+1][0])
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			weights, scale := Softmax(in[n]), in[n+1][0]
			slopes := make([]float32, n) // Σ x_l·dOut
			for l := range n {
				addScaled(dIn[l], dOut, weights[l]*scale)
				slopes[l] = dot(in[l], dOut)
			}
			if dIn[n+1] != nil {
				dIn[n+1][0] += dot(weights, slopes)
			}
			kernel.SoftmaxBackward(slopes, weights)
			addScaled(dIn[n], slopes, scale)
		},
	}.Apply(layers...)
}
