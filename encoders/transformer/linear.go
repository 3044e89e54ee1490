package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// linear is x·W + b.
type linear struct {
	weight *nn.Param // [in out]
	bias   *nn.Param // [out]
}

func newLinear(at nn.Params, in, out int, deviation float64) linear {
	return linear{at.Normal("weight", deviation, in, out), at.Zeros("bias", out)}
}

// forward writes x·W + b to out: x [T in], out [T out].
func (l linear) forward(out, x []float32) {
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	kernel.Repeat(out, l.bias.Data)
	kernel.MatMul(out, x, l.weight.Data, len(x)/in, in, width)
}

// backward adds to dx the gradient at forward's x, given that at its result, and the parameters' to into. A dx of nil
// is not wanted.
func (l linear) backward(dx, x, dOut []float32, into nn.Gradients) {
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	rows := len(x) / in
	if d := into[l.weight]; d != nil {
		kernel.MatMulAT(d, x, dOut, in, rows, width)
	}
	if d := into[l.bias]; d != nil {
		kernel.SumRows(d, dOut)
	}
	if dx != nil {
		kernel.MatMulBT(dx, dOut, l.weight.Data, rows, width, in)
	}
}
