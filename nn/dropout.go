package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

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
