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

func (b *builder) block(number int) block {
	made := block{pre: b.layout.preNorm()}
	outputRate := 0.0
	if rate := b.layout.outputDropout; rate != nil {
		outputRate = rate(b.config)
	}
	if made.pre && number > 0 {
		made.attentionNorm = b.norm("attention.LayerNorm", b.Width)
	}
	made.attention = b.attention(number)
	made.attentionDrop = b.dropout("attention.output", outputRate)
	if made.pre {
		made.outputNorm = b.norm("intermediate.LayerNorm", b.Width)
		made.feedForward = b.feedForward()
		return made
	}
	made.attentionNorm = b.norm("attention.output.LayerNorm", b.Width)
	made.feedForward = b.feedForward()
	made.outputDrop = b.dropout("output", b.Dropout)
	made.outputNorm = b.norm("output.LayerNorm", b.Width)
	return made
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

func newBlockState(m memory, c config, rows int) blockState {
	size := rows * c.Width
	return blockState{
		attended: newAttended(m, c, rows),
		fed:      newFed(m, c, rows),
		sums:     [2][]float32{m.Scratch(size), m.Scratch(size)},
		stats:    [2][]float32{m.Scratch(2 * rows), m.Scratch(2 * rows)},
		middle:   m.Scratch(size),
	}
}

// forward writes the states after the block to out, given those before it, x [T D].
func (b block) forward(p pass, s blockState, out, x []float32, starts []int) {
	b.attend(p, s, x, starts)
	b.finish(p, s, out, s.attended.context, x)
}

// attend is the part of forward in which tokens read others.
func (b block) attend(p pass, s blockState, x []float32, starts []int) {
	if b.pre {
		x = b.entered(s, x)
	}
	b.attention.attend(p, s.attended, x, starts, s.drops)
}

// finish is the rest of forward, in which each row is computed alone, from what attention has read, context [T D], and
// the states before the block, x. out may be context.
func (b block) finish(p pass, s blockState, out, context, x []float32) {
	b.attention.output.forward(p, s.sums[0], context,
		kernel.Epilogue{Dropout: b.attentionDrop.epilogue(p, s.drops), Residual: x})
	if b.pre {
		b.finishPre(p, s, out)
		return
	}
	b.attentionNorm.forward(s.middle, s.stats[0], s.sums[0])
	b.feedForward.forward(p, s.fed, s.sums[1], s.middle, s.drops,
		kernel.Epilogue{Dropout: b.outputDrop.epilogue(p, s.drops), Residual: s.middle})
	b.outputNorm.forward(out, s.stats[1], s.sums[1])
}

// blockGradients is memory for a block's backward: gradients at the values in blockState.
type blockGradients struct {
	attended     attendedGradients
	raised, gate []float32 // [T F]; gate is empty where there is none
	sum, dropped []float32 // [T D], of either half of the block
	middle       []float32 // [T D]
}

func newBlockGradients(m memory, c config, rows int) blockGradients {
	size, raised, gate := rows*c.Width, rows*c.FeedForward, 0
	if c.layout.gated() {
		gate = raised
	}
	g := blockGradients{sum: m.Scratch(size), dropped: m.Scratch(size), middle: m.Scratch(size)}
	wide := m.Scratch(max(raised+gate, 3*size))
	if wide == nil { // it is only counted
		return g
	}
	g.raised, g.gate = wide[:raised], wide[raised:raised+gate]
	// Attention's backward comes last and uses the memory of the others.
	g.attended = attendedGradients{wide[:size], wide[size : 2*size], wide[2*size : 3*size], g.middle}
	return g
}

// backward takes the gradient at forward's result, dOut. It writes the gradient at x to dx, unless dx is nil, and adds
// the parameters' gradients to into. d is scratch memory.
func (b block) backward(p pass, s blockState, d blockGradients, dx, x, dOut []float32, starts []int,
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
func (b block) finishPre(p pass, s blockState, out []float32) {
	b.outputNorm.forward(s.middle, s.stats[1], s.sums[0])
	b.feedForward.forward(p, s.fed, out, s.middle, s.drops, kernel.Epilogue{Residual: s.sums[0]})
}

func (b block) backwardPre(p pass, s blockState, d blockGradients, dx, x, dOut []float32, starts []int,
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

// feedForward is linear, GELU, linear, applied to each token separately. The activation may be multiplied by a second
// linear layer, its gate (GeGLU, Shazeer 2020), and then has dropout.
type feedForward struct {
	up   *linear // [D F]
	gate *linear // [D F]; nil for none
	drop dropout // of the gated activation
	down *linear // [F D]
}

func (b *builder) feedForward() feedForward {
	biased := !b.NoBias.FeedForward
	f := feedForward{up: b.linear("intermediate.dense", b.Width, b.FeedForward, biased)}
	if b.layout.gated() {
		f.gate = b.linear("intermediate.gate", b.Width, b.FeedForward, biased)
		f.drop = b.dropout("intermediate", b.Dropout)
	}
	f.down = b.linear("output.dense", b.FeedForward, b.Width, biased)
	return f
}

// fed is what feedForward's forward keeps for backward, [T F] each.
type fed struct {
	raised, active []float32 // before and after the activation
	gate           []float32 // nil where there is none
}

func newFed(m memory, c config, rows int) fed {
	wide := func() []float32 { return m.Scratch(rows * c.FeedForward) }
	s := fed{raised: wide(), active: wide()}
	if c.layout.gated() {
		s.gate = wide()
	}
	return s
}

// forward writes the result for x [T D] to out [T D], and applies the epilogue after.
func (f feedForward) forward(p pass, s fed, out, x []float32, drops bool, after kernel.Epilogue) {
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
func (f feedForward) backward(p pass, s fed, dx, x, dOut, beside, dRaised, dGate []float32, drops bool,
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

type norm struct {
	weight, bias *nn.Param // [D]; bias may be nil
	zeros        []float32 // [D] in place of the bias that there is not
	epsilon      float64
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

func (b *builder) dropout(part string, rate float64) dropout {
	return dropout{b.at(part).In("dropout").Path(), rate}
}

// epilogue returns the dropout for the epilogue of a product; none where nothing is dropped.
func (d dropout) epilogue(p pass, drops bool) kernel.Dropped {
	if !drops || d.rate == 0 {
		return kernel.Dropped{}
	}
	return kernel.Dropped{Key: p.Key(d.place), Rate: d.rate}
}

// apply writes x after dropout to out and returns out; where nothing is dropped it returns x. It is its own backward:
// the same elements of a gradient are dropped, the others are scaled by the same factor.
func (d dropout) apply(p pass, drops bool, out, x []float32) []float32 {
	if !drops || d.rate == 0 {
		return x
	}
	kernel.Dropout(out, x, p.Key(d.place), d.rate)
	return out
}
