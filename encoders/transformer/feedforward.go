package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// feedForward is linear, GELU, linear, each token for itself.
type feedForward struct {
	up   linear // [D F]
	down linear // [F D]
}

func newFeedForward(at nn.Params, c Config) feedForward {
	return feedForward{newLinear(at.In("intermediate.dense"), c.Width, c.FeedForward, c.InitializerRange), newLinear(at.In("output.dense"), c.FeedForward, c.Width, c.InitializerRange)}
}

// fed is what forward keeps for backward, [T F] each.
type fed struct {
	raised, active []float32 // before and after the activation
}

func newFed(p *nn.Pass, size int) fed { return fed{p.Floats(size), p.Floats(size)} }

// forward writes the result for x [T D] to out [T D].
func (f feedForward) forward(s fed, out, x []float32) {
	f.up.forward(s.raised, x)
	kernel.GELU(s.active, s.raised)
	f.down.forward(out, s.active)
}

// backward adds to dx the gradient at forward's x, given that at its result, and the parameters' to into. d is memory
// of zeros.
func (f feedForward) backward(s, d fed, dx, x, dOut []float32, into nn.Gradients) {
	f.down.backward(d.active, s.active, dOut, into)
	kernel.GELUBackward(d.raised, s.raised, d.active)
	f.up.backward(dx, x, d.raised, into)
}
