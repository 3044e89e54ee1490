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

// backward takes the gradient at forward's result, dOut. It adds the gradient at x to dx, unless dx is nil, and the
// parameters' gradients to into.
func (n norm) backward(dx, stats, x, dOut []float32, into nn.Gradients) {
	kernel.LayerNormBackward(dx, into.Of(n.weight), into.Of(n.bias), stats, x, n.weight.Data, dOut)
}
