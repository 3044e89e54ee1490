package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// norm is layer normalisation.
type norm struct {
	weight, bias *nn.Param // [D]
	epsilon      float64
}

func newNorm(at nn.Params, width int, epsilon float64) norm {
	return norm{at.Ones("weight", width), at.Zeros("bias", width), epsilon}
}

// forward normalises the rows of x [T D] to out; stats [T 2] is for backward.
func (n norm) forward(out, stats, x []float32) {
	kernel.LayerNorm(out, stats, x, n.weight.Data, n.bias.Data, n.epsilon)
}

// backward adds to dx the gradient at forward's x, given that at its result, and the parameters' to into. A dx of nil
// is not wanted.
func (n norm) backward(dx, stats, x, dOut []float32, into nn.Gradients) {
	kernel.LayerNormBackward(dx, into.Of(n.weight), into.Of(n.bias), stats, x, n.weight.Data, dOut)
}
