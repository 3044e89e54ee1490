package transformer

import (
	"sync/atomic"

	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// linear is x·W + b, or x·W.
type linear struct {
	weight *nn.Param // [in out]
	bias   *nn.Param // [out]; nil for none
	lora   *lora     // a change that is learned instead of the weight; nil for none
	packed *atomic.Pointer[packed]
	own    *nn.Precision // of its weight in a quantized model, and of all its products; nil: that of the pass

	adapters map[string]adapter // changes, of which a pass names the one that applies; nil for none
}

// adapter is a change of a weight, with what is packed of the weight and the change.
type adapter struct {
	lora   *lora
	packed *atomic.Pointer[packed]
}

// of returns the layer as it is in a pass: with the change that the pass names.
func (l linear) of(p *nn.Pass) linear {
	if a, ok := l.adapters[p.Adapter]; ok {
		l.lora, l.packed = a.lora, a.packed
	}
	return l
}

// packed is one version of a weight in the layout of products of one precision.
type packed struct {
	kernel.Packed
	version   uint64
	precision nn.Precision
}

func newLinear(at nn.Params, in, out int, deviation float64, biased bool) linear {
	l := linear{weight: at.Normal("weight", deviation, in, out), packed: new(atomic.Pointer[packed])}
	if biased {
		l.bias = at.Zeros("bias", out)
	}
	return l
}

// learns reports whether the weight changes from step to step.
func (l linear) learns() bool { return l.weight.LearnsNow() || l.lora != nil }

// values returns the weight that rows are multiplied by, with its LoRA change, and its version.
func (l linear) values() ([]float32, uint64) {
	if l.lora == nil {
		return l.weight.Data, l.weight.Version()
	}
	return l.lora.of(l.weight), l.weight.Version() + l.lora.version()
}

// forward writes x·W + b to out, and applies the epilogue after: x [T in], out [T out].
func (l linear) forward(p *nn.Pass, out, x []float32, after kernel.Epilogue) {
	l.product(p, out, x, after).Multiply()
}

// product returns forward as a product.
func (l linear) product(p *nn.Pass, out, x []float32, after kernel.Epilogue) kernel.Product {
	l = l.of(p)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	precision := l.precision(p)
	product := kernel.Product{
		M: len(x) / in, K: in, N: width, A: kernel.Dense(x, in), C: out,
		Start: kernel.StartAtZero, After: after, Precision: precision,
	}
	if l.bias != nil {
		product.Start, product.Bias = kernel.StartAtBias, l.bias.Data
	}
	if p.Unpacked && l.own == nil || p.Training && l.learns() { // the weight changes in the next step
		values, _ := l.values()
		product.B = kernel.Dense(values, width)
	} else {
		product.Packed = l.pack(precision)
	}
	return product
}

// precision returns that of the layer's products in a pass.
func (l linear) precision(p *nn.Pass) nn.Precision {
	switch {
	case l.own != nil:
		return *l.own
	case p.Precision == nn.Int8 && l.weight.Shape[0] > kernel.MaxInt8Depth:
		return nn.Float32
	}
	return p.Precision
}

// isPacked reports whether the layer has its weight as integers in packed alone.
func (l linear) isPacked() bool { return l.own != nil && *l.own == nn.Int8 }

// pack returns the packed weight, which is made once for each version and precision.
func (l linear) pack(precision nn.Precision) *kernel.Packed {
	values, version := l.values()
	if have := l.packed.Load(); have != nil && have.version == version && have.precision == precision {
		return &have.Packed
	}
	made := &packed{version: version, precision: precision}
	made.Pack(kernel.Dense(values, l.weight.Shape[1]), l.weight.Shape[0], l.weight.Shape[1], precision)
	l.packed.Store(made)
	return &made.Packed
}

// backward adds the parameters' gradients to into, given forward's x and the gradient at its result, dOut.
func (l linear) backward(p *nn.Pass, x, dOut []float32, into nn.Gradients) {
	l = l.of(p)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	if d := into.Of(l.weight); d != nil {
		kernel.Product{
			M: in, K: len(x) / in, N: width, A: kernel.Dense(x, in).T(), B: kernel.Dense(dOut, width), C: d,
			Precision: p.Precision,
		}.Multiply()
	}
	if l.bias != nil {
		if d := into.Of(l.bias); d != nil {
			kernel.SumRows(d, dOut)
		}
	}
	if l.lora != nil {
		l.lora.backward(p, x, dOut, into)
	}
}

// backwardTo takes the gradient at forward's result, dOut. It writes the gradient at x to dx, or adds it, by start, and
// applies the epilogue after.
func (l linear) backwardTo(p *nn.Pass, dx, dOut []float32, start kernel.Start, after kernel.Epilogue) {
	l = l.of(p)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	values, _ := l.values()
	kernel.Product{
		M: len(dOut) / width, K: width, N: in, A: kernel.Dense(dOut, width), B: kernel.Dense(values, width).T(), C: dx,
		Start: start, After: after, Precision: p.Precision,
	}.Multiply()
}
