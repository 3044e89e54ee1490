package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

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
				if dIn[l] != nil {
					addScaled(dIn[l], dOut, weights[l]*scale)
				}
				slopes[l] = dot(in[l], dOut)
			}
			if dIn[n+1] != nil {
				dIn[n+1][0] += dot(weights, slopes)
			}
			if dIn[n] != nil {
				kernel.SoftmaxBackward(slopes, weights)
				addScaled(dIn[n], slopes, scale)
			}
		},
	}.Apply(layers...)
}
