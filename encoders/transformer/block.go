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
