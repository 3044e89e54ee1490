package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// block is one layer: attention and feed-forward, each added to its input and then normalised (post-norm, Vaswani et
// al. 2017).
type block struct {
	attention     attention
	attentionDrop dropout
	attentionNorm norm
	feedForward   feedForward
	outputDrop    dropout
	outputNorm    norm // in a pre-norm block, of the feed-forward layer's input
	pre           bool // pre-norm: see entered and finishPre
}

func newBlock(at nn.Params, c config, number int) block {
	outputRate := 0.0
	if rate := c.layout().outputDropout; rate != nil {
		outputRate = rate(c)
	}
	if c.layout().preNorm {
		return newPreBlock(at, c, number, outputRate)
	}
	b := block{
		attention:     newAttention(at.In("attention"), c),
		attentionDrop: newDropout(at.In("attention.output"), outputRate),
		attentionNorm: newNorm(at.In("attention.output.LayerNorm"), c.Width, c),
		feedForward:   newFeedForward(at, c),
		outputDrop:    newDropout(at.In("output"), c.Dropout),
		outputNorm:    newNorm(at.In("output.LayerNorm"), c.Width, c),
	}
	return b
}

// blockState is what a block's forward keeps for its backward: T rows.
type blockState struct {
	attended attended
	fed      fed
	sums     [2][]float32 // [T D] before each norm
	stats    [2][]float32 // [T 2]
	middle   []float32    // [T D] after the first norm
	drops    bool
}

func newBlockState(p *nn.Pass, c config, rows int) blockState {
	size, wide := rows*c.Width, rows*c.FeedForward
	return blockState{
		attended: attended{query: p.Scratch(size), key: p.Scratch(size), value: p.Scratch(size),
			context: p.Scratch(size), normalizers: p.Scratch(c.Heads * rows)},
		fed:    newFed(p, c, wide),
		sums:   [2][]float32{p.Scratch(size), p.Scratch(size)},
		stats:  [2][]float32{p.Scratch(2 * rows), p.Scratch(2 * rows)},
		middle: p.Scratch(size),
	}
}

// forward writes the states after the block to out, given those before it, x [T D].
func (b block) forward(p *nn.Pass, s blockState, out, x []float32, starts []int) {
	b.attend(p, s, x, starts)
	b.finish(p, s, out, s.attended.context, x)
}

// attend is the part of forward in which tokens read others.
func (b block) attend(p *nn.Pass, s blockState, x []float32, starts []int) {
	if b.pre {
		x = b.entered(s, x)
	}
	b.attention.attend(p, s.attended, x, starts, s.drops)
}

// finish is the rest of forward, in which each row is computed alone, from what attention has read, context [T D], and
// the states before the block, x. out may be context.
func (b block) finish(p *nn.Pass, s blockState, out, context, x []float32) {
	b.attention.output.forward(p, s.sums[0], context,
		kernel.Epilogue{Dropout: b.attentionDrop.of(p, s.drops), Residual: x})
	if b.pre {
		b.finishPre(p, s, out)
		return
	}
	b.attentionNorm.forward(s.middle, s.stats[0], s.sums[0])
	b.feedForward.forward(p, s.fed, s.sums[1], s.middle, s.drops,
		kernel.Epilogue{Dropout: b.outputDrop.of(p, s.drops), Residual: s.middle})
	b.outputNorm.forward(out, s.stats[1], s.sums[1])
}

// blockGradients is memory for a block's backward: gradients at the values in blockState.
type blockGradients struct {
	attended     attendedGradients
	raised, gate []float32 // [T F]; gate is nil where there is none
	sum, dropped []float32 // [T D], of either half of the block
	middle       []float32 // [T D]
}

func newBlockGradients(p *nn.Pass, c config, rows int) blockGradients {
	size := rows * c.Width
	g := blockGradients{sum: p.Scratch(size), dropped: p.Scratch(size), middle: p.Scratch(size)}
	raised := rows * c.FeedForward
	wide := p.Scratch(max(c.wide()*raised, 3*size))
	g.raised = wide[:raised]
	if c.layout().gated {
		g.gate = wide[raised : 2*raised]
	}
	// Attention's backward comes last and uses the memory of the others.
	g.attended = attendedGradients{wide[:size], wide[size : 2*size], wide[2*size : 3*size], g.middle}
	return g
}

// backward takes the gradient at forward's result, dOut. It writes the gradient at x to dx, unless dx is nil, and adds
// the parameters' gradients to into. d is scratch memory.
func (b block) backward(p *nn.Pass, s blockState, d blockGradients, dx, x, dOut []float32, starts []int,
	into nn.Gradients) {
	if b.pre {
		b.backwardPre(p, s, d, dx, x, dOut, starts, into)
		return
	}
	clear(d.sum)
	b.outputNorm.backward(d.sum, s.stats[1], s.sums[1], dOut, into)
	dropped := b.outputDrop.apply(p, s.drops, d.dropped, d.sum)
	b.feedForward.backward(p, s.fed, d.middle, s.middle, dropped, d.sum, d.raised, d.gate, s.drops, into)

	clear(d.sum)
	b.attentionNorm.backward(d.sum, s.stats[0], s.sums[0], d.middle, into)
	dropped = b.attentionDrop.apply(p, s.drops, d.dropped, d.sum)
	b.attention.backward(p, s.attended, d.attended, dx, x, dropped, d.sum, starts, s.drops, into)
}

// entered returns what attention of a pre-norm block reads (Xiong et al. 2020): attention and feed-forward have a
// normalised input, and their results are added to the states as they are,
//
//	a = x + attention(LayerNorm(x))
//	y = a + feedForward(LayerNorm(a))
//
// The first block may have no norm before attention.
func (b block) entered(s blockState, x []float32) []float32 {
	if b.attentionNorm.weight == nil {
		return x
	}
	b.attentionNorm.forward(s.sums[1], s.stats[0], x)
	return s.sums[1]
}

// finishPre is finish of a pre-norm block, after the sum of attention and x.
func (b block) finishPre(p *nn.Pass, s blockState, out []float32) {
	b.outputNorm.forward(s.middle, s.stats[1], s.sums[0])
	b.feedForward.forward(p, s.fed, out, s.middle, s.drops, kernel.Epilogue{Residual: s.sums[0]})
}

// backwardPre is backward of a pre-norm block.
func (b block) backwardPre(p *nn.Pass, s blockState, d blockGradients, dx, x, dOut []float32, starts []int,
	into nn.Gradients) {
	b.feedForward.backward(p, s.fed, d.middle, s.middle, dOut, nil, d.raised, d.gate, s.drops, into)
	copy(d.sum, dOut)
	b.outputNorm.backward(d.sum, s.stats[1], s.sums[0], d.middle, into)

	dropped := b.attentionDrop.apply(p, s.drops, d.dropped, d.sum)
	if b.attentionNorm.weight == nil {
		b.attention.backward(p, s.attended, d.attended, dx, x, dropped, d.sum, starts, s.drops, into)
		return
	}
	// attention is done with the gradient at its context when it writes that at its input
	dEntered := d.middle
	b.attention.backward(p, s.attended, d.attended, dEntered, s.sums[1], dropped, nil, starts, s.drops, into)
	if dx != nil {
		copy(dx, d.sum)
	}
	b.attentionNorm.backward(dx, s.stats[0], x, dEntered, into)
}

// newPreBlock makes a pre-norm block. outputRate is the dropout rate of attention's output.
func newPreBlock(at nn.Params, c config, number int, outputRate float64) block {
	b := block{pre: true}
	if number > 0 {
		b.attentionNorm = newNorm(at.In("attention.LayerNorm"), c.Width, c)
	}
	b.attention = newAttention(at.In("attention"), c)
	b.attentionDrop = newDropout(at.In("attention.output"), outputRate)
	b.outputNorm = newNorm(at.In("intermediate.LayerNorm"), c.Width, c)
	b.feedForward = newFeedForward(at, c)
	return b
}

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

// dropout sets hidden states to zero with a probability, its rate, in training. Its place makes its mask different from
// those of other dropouts.
type dropout struct {
	place string
	rate  float64
}

func newDropout(at nn.Params, rate float64) dropout {
	return dropout{at.In("dropout").Path(), rate}
}

// of returns the dropout for the epilogue of a product; none where nothing is dropped.
func (d dropout) of(p *nn.Pass, drops bool) kernel.Dropped {
	if !drops || d.rate == 0 {
		return kernel.Dropped{}
	}
	return kernel.Dropped{Key: p.Key(d.place), Rate: d.rate}
}

// apply writes x after dropout to out and returns out; where nothing is dropped it returns x. It is its own backward:
// the same elements of a gradient are dropped, the others are scaled by the same factor.
func (d dropout) apply(p *nn.Pass, drops bool, out, x []float32) []float32 {
	if !drops || d.rate == 0 {
		return x
	}
	kernel.Dropout(out, x, p.Key(d.place), d.rate)
	return out
}
