package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// feedForward is linear, GELU, linear, applied to each token separately.
type feedForward struct {
	up   linear // [D F]
	down linear // [F D]
}

func newFeedForward(at nn.Params, c config) feedForward {
	return feedForward{
		up:   newLinear(at.In("intermediate.dense"), c.Width, c.FeedForward, c.InitializerRange),
		down: newLinear(at.In("output.dense"), c.FeedForward, c.Width, c.InitializerRange),
	}
}

// fed is what feedForward's forward keeps for backward, [T F] each.
type fed struct {
	raised, active []float32 // before and after the activation
}

// forward writes the result for x [T D] to out [T D], and applies the epilogue after.
func (f feedForward) forward(p *nn.Pass, s fed, out, x []float32, after kernel.Epilogue) {
	f.up.forward(p, s.raised, x, kernel.Epilogue{GELU: s.active})
	f.down.forward(p, out, s.active, after)
}

// backward takes the gradient at forward's result, dOut. It writes the gradient at x, plus beside, to dx [T D], and
// adds the parameters' gradients to into. dRaised [T F] is scratch memory.
func (f feedForward) backward(p *nn.Pass, s fed, dx, x, dOut, beside, dRaised []float32, into nn.Gradients) {
	f.down.backward(p, s.active, dOut, into)
	f.down.backwardTo(p, dRaised, dOut, kernel.StartAtZero, kernel.Epilogue{GELUGradient: s.raised})
	f.up.backward(p, x, dRaised, into)
	f.up.backwardTo(p, dx, dRaised, kernel.StartAtZero, kernel.Epilogue{Residual: beside})
}
