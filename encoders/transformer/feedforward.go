package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// feedForward is linear, GELU, linear, applied to each token separately. The activation may be multiplied by a second
// linear layer, its gate (GeGLU, Shazeer 2020), and then has dropout.
type feedForward struct {
	up   linear  // [D F]
	gate *linear // [D F]; nil for none
	drop dropout // of the gated activation
	down linear  // [F D]
}

func newFeedForward(at nn.Params, c config) feedForward {
	biased := !c.NoBias.FeedForward
	f := feedForward{up: newLinear(at.In("intermediate.dense"), c.Width, c.FeedForward, c.InitializerRange, biased)}
	if c.layout().gated {
		gate := newLinear(at.In("intermediate.gate"), c.Width, c.FeedForward, c.InitializerRange, biased)
		f.gate, f.drop = &gate, newDropout(at.In("intermediate"), c.Dropout)
	}
	f.down = newLinear(at.In("output.dense"), c.FeedForward, c.Width, c.InitializerRange, biased)
	return f
}

// fed is what feedForward's forward keeps for backward, [T F] each.
type fed struct {
	raised, active []float32 // before and after the activation
	gate           []float32 // nil where there is none
}

func newFed(p *nn.Pass, c config, wide int) fed {
	s := fed{raised: p.Scratch(wide), active: p.Scratch(wide)}
	if c.layout().gated {
		s.gate = p.Scratch(wide)
	}
	return s
}

// forward writes the result for x [T D] to out [T D], and applies the epilogue after.
func (f feedForward) forward(p *nn.Pass, s fed, out, x []float32, drops bool, after kernel.Epilogue) {
	if f.gate == nil {
		f.up.forward(p, s.raised, x, kernel.Epilogue{GELU: s.active})
	} else {
		f.gate.forward(p, s.gate, x, kernel.Epilogue{})
		f.up.forward(p, s.raised, x, kernel.Epilogue{GELU: s.active, Gate: s.gate})
		f.drop.apply(p, drops, s.active, s.active)
	}
	f.down.forward(p, out, s.active, after)
}

// backward takes the gradient at forward's result, dOut. It writes the gradient at x, plus beside, to dx [T D], and
// adds the parameters' gradients to into. dRaised and dGate [T F] are scratch memory.
func (f feedForward) backward(p *nn.Pass, s fed, dx, x, dOut, beside, dRaised, dGate []float32, drops bool,
	into nn.Gradients) {
	f.down.backward(p, s.active, dOut, into)
	if f.gate == nil {
		f.down.backwardTo(p, dRaised, dOut, kernel.StartAtZero, kernel.Epilogue{GELUGradient: s.raised})
	} else {
		f.down.backwardTo(p, dRaised, dOut, kernel.StartAtZero, kernel.Epilogue{})
		f.drop.apply(p, drops, dRaised, dRaised)
		kernel.GatedGELUBackward(dRaised, dGate, s.raised, s.gate)
		f.gate.backward(p, x, dGate, into)
	}
	f.up.backward(p, x, dRaised, into)
	f.up.backwardTo(p, dx, dRaised, kernel.StartAtZero, kernel.Epilogue{Residual: beside})
	if f.gate != nil {
		f.gate.backwardTo(p, dx, dGate, kernel.StartAtC, kernel.Epilogue{})
	}
}
