package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// block is one layer: attention and feed-forward, each added to what it reads and then normalised (post-norm, Vaswani
// et al. 2017).
type block struct {
	attention     attention
	attentionDrop dropout
	attentionNorm norm
	feedForward   feedForward
	outputDrop    dropout
	outputNorm    norm
}

func newBlock(at nn.Params, c Config) block {
	b := block{
		attention:     newAttention(at.In("attention"), c),
		attentionDrop: newDropout(at.In("attention.output"), c.Dropout),
		attentionNorm: newNorm(at.In("attention.output.LayerNorm"), c.Width, c.Epsilon),
		feedForward:   newFeedForward(at, c),
		outputDrop:    newDropout(at.In("output"), c.Dropout),
		outputNorm:    newNorm(at.In("output.LayerNorm"), c.Width, c.Epsilon),
	}
	if c.Layout == "distilbert" {
		b.attentionDrop.rate = 0 // DistilBERT drops no attention output
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

func newBlockState(p *nn.Pass, c Config, rows int) blockState {
	size := rows * c.Width
	return blockState{
		attended: newAttended(p, size), fed: newFed(p, rows*c.FeedForward),
		sums: [2][]float32{p.Floats(size), p.Floats(size)}, stats: [2][]float32{p.Floats(2 * rows), p.Floats(2 * rows)},
		middle: p.Floats(size),
	}
}

// forward writes the states after the block to out, given those before it, x [T D].
func (b block) forward(p *nn.Pass, s blockState, out, x []float32, starts []int) {
	b.attention.forward(p, s.attended, s.sums[0], x, starts, s.drops)
	if s.drops {
		b.attentionDrop.apply(p, s.sums[0])
	}
	kernel.Add(s.sums[0], x)
	b.attentionNorm.forward(s.middle, s.stats[0], s.sums[0])

	b.feedForward.forward(s.fed, s.sums[1], s.middle)
	if s.drops {
		b.outputDrop.apply(p, s.sums[1])
	}
	kernel.Add(s.sums[1], s.middle)
	b.outputNorm.forward(out, s.stats[1], s.sums[1])
}

// blockGradients is memory for a block's backward: the gradients at what blockState keeps.
type blockGradients struct {
	all      []float32 // of them
	attended attended
	fed      fed
	sums     [2][]float32
	middle   []float32
}

func newBlockGradients(p *nn.Pass, c Config, rows int) *blockGradients {
	size, wide := rows*c.Width, rows*c.FeedForward
	g := &blockGradients{all: p.Floats(7*size + 2*wide)}
	rest := g.all
	take := func(n int) []float32 {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	g.attended = attended{take(size), take(size), take(size), take(size)}
	g.fed = fed{take(wide), take(wide)}
	g.sums = [2][]float32{take(size), take(size)}
	g.middle = take(size)
	return g
}

// backward adds to dx the gradient at forward's x, given that at its result, and the parameters' to into. A dx of nil
// is not wanted. d is memory.
func (b block) backward(p *nn.Pass, s blockState, d *blockGradients, dx, x, dOut []float32, starts []int, into nn.Gradients) {
	clear(d.all)
	b.outputNorm.backward(d.sums[1], s.stats[1], s.sums[1], dOut, into)
	kernel.Add(d.middle, d.sums[1])
	if s.drops {
		b.outputDrop.apply(p, d.sums[1])
	}
	b.feedForward.backward(s.fed, d.fed, d.middle, s.middle, d.sums[1], into)

	b.attentionNorm.backward(d.sums[0], s.stats[0], s.sums[0], d.middle, into)
	if dx != nil {
		kernel.Add(dx, d.sums[0])
	}
	if s.drops {
		b.attentionDrop.apply(p, d.sums[0])
	}
	b.attention.backward(p, s.attended, d.attended, dx, x, d.sums[0], starts, s.drops, into)
}
