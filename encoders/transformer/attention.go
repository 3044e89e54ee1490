package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// attention is multi-head self-attention of each text.
type attention struct {
	query, key, value linear // [D D]
	output            linear // [D D]
	heads             int
	drop              dropout // of the weights
	rotary            *rotary // nil where queries and keys are not rotated
	window            int     // tokens at each side of a token that it reads; 0: all
}

func newAttention(at nn.Params, c config) attention {
	linear := func(name string) linear {
		return newLinear(at.In(name), c.Width, c.Width, c.InitializerRange, !c.NoBias.Attention)
	}
	return attention{
		query: linear("self.query"), key: linear("self.key"), value: linear("self.value"),
		output: linear("output.dense"),
		heads:  c.Heads, drop: newDropout(at.In("self"), c.AttentionDropout),
	}
}

// attended is what attention's forward keeps for backward.
type attended struct {
	query, key, value, context []float32 // [T D] each
	normalizers                []float32 // [heads T]
	distances                  distances
}

// kernel returns the arithmetic for texts that begin at starts, with the biases of by.
func (a attention) kernel(p *nn.Pass, by distances, starts []int, drops bool) kernel.Attention {
	k := kernel.Attention{Starts: starts, Heads: a.heads, Width: a.query.weight.Shape[1], Window: a.window,
		Bias: by.bias, DBias: by.dBias, Reach: by.reach}
	if drops {
		k.Dropout, k.Key = a.drop.rate, p.Key(a.drop.place)
	}
	return k
}

// attend writes to s.context what each token reads of x [T D]: attention before its output layer.
func (a attention) attend(p *nn.Pass, s attended, x []float32, starts []int, drops bool) {
	none := kernel.Epilogue{}
	kernel.MultiplyAll(a.query.product(p, s.query, x, none), a.key.product(p, s.key, x, none),
		a.value.product(p, s.value, x, none))
	if a.rotary != nil {
		a.rotary.rotate(s.query, starts)
		a.rotary.rotate(s.key, starts)
	}
	a.kernel(p, s.distances, starts, drops).Forward(s.context, s.normalizers, s.query, s.key, s.value)
}

// backward takes the gradient at the output layer's result, dOut. It writes the gradient at x, plus beside, to dx,
// unless dx is nil, and adds the parameters' gradients to into. d is scratch memory.
func (a attention) backward(p *nn.Pass, s attended, d attendedGradients, dx, x, dOut, beside []float32, starts []int,
	drops bool, into nn.Gradients) {
	a.output.backward(p, s.context, dOut, into)
	a.output.backwardTo(p, d.context, dOut, kernel.StartAtZero, kernel.Epilogue{})
	a.kernel(p, s.distances, starts, drops).Backward(d.query, d.key, d.value, s.query, s.key, s.value, s.context,
		s.normalizers, d.context)
	if a.rotary != nil {
		a.rotary.rotateBack(d.query, starts)
		a.rotary.rotateBack(d.key, starts)
	}
	a.query.backward(p, x, d.query, into)
	a.key.backward(p, x, d.key, into)
	a.value.backward(p, x, d.value, into)
	if dx == nil {
		return
	}
	a.query.backwardTo(p, dx, d.query, kernel.StartAtZero, kernel.Epilogue{Residual: beside})
	a.key.backwardTo(p, dx, d.key, kernel.StartAtC, kernel.Epilogue{})
	a.value.backwardTo(p, dx, d.value, kernel.StartAtC, kernel.Epilogue{})
}

// attendedGradients is memory for the gradients at the values in attended, [T D] each.
type attendedGradients struct{ query, key, value, context []float32 }
