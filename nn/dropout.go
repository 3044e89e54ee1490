package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Dropout hides a share of its input in training and scales the rest, so that the mean stays.
type Dropout struct {
	place string
	rate  float64
}

// NewDropout makes a dropout whose mask is a function of the place of params, and of seed and step. Two of one place
// share a mask.
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
