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
	return feedForward{
		up:   newLinear(at.In("intermediate.dense"), c.Width, c.FeedForward, c.InitializerRange),
		down: newLinear(at.In("output.dense"), c.FeedForward, c.Width, c.InitializerRange),
	}
}

// fed is what forward keeps for backward, [T F] each.
type fed struct {
	raised, active []float32 // before and after the activation
}

// forward writes the result for x [T D] to out [T D], and does to it what follows.
func (f feedForward) forward(p *nn.Pass, s fed, out, x []float32, after kernel.Epilogue) {
	f.up.forward(p, s.raised, x, kernel.Epilogue{GELU: s.active})
	f.down.forward(p, out, s.active, after)
}

// backward writes to dx [T D] the gradient at forward's x, given that at its result, plus beside, and adds the
// parameters' to into. dRaised [T F] is memory.
func (f feedForward) backward(p *nn.Pass, s fed, dx, x, dOut, beside, dRaised []float32, into nn.Gradients) {
	f.down.backward(p, s.active, dOut, into)
	f.down.backwardTo(p, dRaised, dOut, kernel.StartAtZero, kernel.Epilogue{GELUGradient: s.raised})
	f.up.backward(p, x, dRaised, into)
	f.up.backwardTo(p, dx, dRaised, kernel.StartAtZero, kernel.Epilogue{Residual: beside})
}
