package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// norm is layer normalisation.
type norm struct {
	weight, bias *nn.Param // [D]; bias may be nil
	zeros        []float32 // [D] in place of the bias that there is not
	epsilon      float64
}

func newNorm(at nn.Params, width int, c config) norm {
	n := norm{weight: at.Ones("weight", width), epsilon: c.Epsilon}
	if c.NoBias.Norms {
		n.zeros = make([]float32, width)
	} else {
		n.bias = at.Zeros("bias", width)
	}
	return n
}

// forward normalises the rows of x [T D] to out; stats [T 2] is for backward.
func (n norm) forward(out, stats, x []float32) {
	bias := n.zeros
	if n.bias != nil {
		bias = n.bias.Data
	}
	kernel.LayerNorm(out, stats, x, n.weight.Data, bias, n.epsilon)
}

// backward takes the gradient at forward's result, dOut. It adds the gradient at x to dx, unless dx is nil, and the
// parameters' gradients to into.
func (n norm) backward(dx, stats, x, dOut []float32, into nn.Gradients) {
	var dBias []float32
	if n.bias != nil {
		dBias = into.Of(n.bias)
	}
	kernel.LayerNormBackward(dx, into.Of(n.weight), dBias, stats, x, n.weight.Data, dOut)
}
