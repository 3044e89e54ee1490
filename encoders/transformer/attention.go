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
}

func newAttention(at nn.Params, c Config) attention {
	linear := func(name string) linear { return newLinear(at.In(name), c.Width, c.Width, c.InitializerRange) }
	return attention{
		query: linear("self.query"), key: linear("self.key"), value: linear("self.value"),
		output: newLinear(at.In("output.dense"), c.Width, c.Width, c.InitializerRange),
		heads:  c.Heads, drop: newDropout(at.In("self"), c.AttentionDropout),
	}
}

// attended is what forward keeps for backward, [T D] each.
type attended struct {
	query, key, value, context []float32
}

func newAttended(p *nn.Pass, size int) attended {
	return attended{p.Floats(size), p.Floats(size), p.Floats(size), p.Floats(size)}
}

// kernel returns the arithmetic for texts that begin at starts.
func (a attention) kernel(p *nn.Pass, starts []int, drops bool) kernel.Attention {
	k := kernel.Attention{Starts: starts, Heads: a.heads, Width: a.query.weight.Shape[1]}
	if drops {
		k.Dropout, k.Key = a.drop.rate, p.Key(a.drop.place)
	}
	return k
}

// forward writes the attention of x [T D] to out [T D].
func (a attention) forward(p *nn.Pass, s attended, out, x []float32, starts []int, drops bool) {
	a.query.forward(s.query, x)
	a.key.forward(s.key, x)
	a.value.forward(s.value, x)
	clear(s.context)
	a.kernel(p, starts, drops).Forward(s.context, s.query, s.key, s.value)
	a.output.forward(out, s.context)
}

// backward adds to dx the gradient at forward's x, given that at its result, and the parameters' to into. A dx of nil
// is not wanted. d is memory of zeros.
func (a attention) backward(p *nn.Pass, s, d attended, dx, x, dOut []float32, starts []int, drops bool, into nn.Gradients) {
	a.output.backward(d.context, s.context, dOut, into)
	a.kernel(p, starts, drops).Backward(d.query, d.key, d.value, s.query, s.key, s.value, d.context)
	a.query.backward(dx, x, d.query, into)
	a.key.backward(dx, x, d.key, into)
	a.value.backward(dx, x, d.value, into)
}
