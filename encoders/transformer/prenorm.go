package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

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
