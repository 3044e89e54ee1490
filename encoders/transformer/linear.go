package transformer

import (
	"sync/atomic"

	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// linear is x·W + b.
type linear struct {
	weight *nn.Param // [in out]
	bias   *nn.Param // [out]
	packed *atomic.Pointer[packed]
}

// packed is a weight laid out for products, as it was at one of its versions.
type packed struct {
	kernel.Packed
	version uint64
}

func newLinear(at nn.Params, in, out int, deviation float64) linear {
	return linear{at.Normal("weight", deviation, in, out), at.Zeros("bias", out), new(atomic.Pointer[packed])}
}

// forward writes x·W + b to out, and does to it what follows: x [T in], out [T out].
func (l linear) forward(p *nn.Pass, out, x []float32, after kernel.Epilogue) {
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	product := kernel.Product{
		M: len(x) / in, K: in, N: width, A: kernel.Dense(x, in), C: out,
		Start: kernel.StartAtBias, Bias: l.bias.Data, After: after, BFloat16: p.BFloat16,
	}
	if p.BFloat16 || p.Training && l.weight.Learns() { // the next step's is another
		product.B = kernel.Dense(l.weight.Data, width)
	} else {
		product.Packed = l.pack()
	}
	product.Multiply()
}

// pack returns the weight packed, which is done once for each of its versions.
func (l linear) pack() *kernel.Packed {
	if have := l.packed.Load(); have != nil && have.version == l.weight.Version() {
		return &have.Packed
	}
	made := &packed{version: l.weight.Version()}
	made.Pack(kernel.Dense(l.weight.Data, l.weight.Shape[1]), l.weight.Shape[0], l.weight.Shape[1])
	l.packed.Store(made)
	return &made.Packed
}

// backward adds the parameters' gradients to into, given forward's x and the gradient at its result, dOut.
func (l linear) backward(p *nn.Pass, x, dOut []float32, into nn.Gradients) {
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	if d := into.Of(l.weight); d != nil {
		kernel.Product{
			M: in, K: len(x) / in, N: width, A: kernel.Dense(x, in).T(), B: kernel.Dense(dOut, width), C: d,
			BFloat16: p.BFloat16,
		}.Multiply()
	}
	if d := into.Of(l.bias); d != nil {
		kernel.SumRows(d, dOut)
	}
}

// backwardTo writes to dx, or adds where start says so, the gradient at forward's x, given that at its result, and does
// to it what follows.
func (l linear) backwardTo(p *nn.Pass, dx, dOut []float32, start kernel.Start, after kernel.Epilogue) {
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	kernel.Product{
		M: len(dOut) / width, K: width, N: in, A: kernel.Dense(dOut, width), B: kernel.Dense(l.weight.Data, width).T(), C: dx,
		Start: start, After: after, BFloat16: p.BFloat16,
	}.Multiply()
}
