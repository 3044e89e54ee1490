package transformer

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// embeddings are the first states of tokens: word, position in its text and token type, summed and normalised.
type embeddings struct {
	words     *nn.Param // [V D]
	positions *nn.Param // [P D]
	types     *nn.Param // [2 D]; nil where the layout has none
	norm      norm
	drop      dropout
	width     int
}

func newEmbeddings(at nn.Params, c config) embeddings {
	table := func(name string, rows int) *nn.Param {
		return at.In(name).Table("weight", c.InitializerRange, rows, c.Width)
	}
	e := embeddings{width: c.Width}
	e.words = table("word_embeddings", c.Vocabulary)
	e.positions = table("position_embeddings", c.MaxPositions)
	if c.Types > 0 {
		e.types = table("token_type_embeddings", c.Types)
	}
	e.norm = newNorm(at.In("LayerNorm"), c.Width, c.Epsilon)
	e.drop = newDropout(at, c.Dropout)
	return e
}

// embedded is what the embeddings' forward keeps for backward.
type embedded struct {
	positions []int32   // [T] of each token in its text
	sum       []float32 // [T D]
	stats     []float32 // [T 2]
	drops     bool
}

// forward writes the states of tokens to out [T D]. The memory of before is used again.
func (e embeddings) forward(p *nn.Pass, before embedded, out []float32, tokens corpus.Tokens, drops bool) embedded {
	t := len(tokens.IDs)
	s := embedded{before.positions[:0], p.Floats(t * e.width), p.Scratch(2 * t), drops}
	for b := range tokens.Rows.Texts() {
		for i := range tokens.Rows.Starts[b+1] - tokens.Rows.Starts[b] {
			s.positions = append(s.positions, int32(i))
		}
	}
	kernel.Gather(s.sum, e.words.Data, tokens.IDs, e.width)
	kernel.Gather(s.sum, e.positions.Data, s.positions, e.width)
	if e.types != nil {
		kernel.Gather(s.sum, e.types.Data, tokens.Rows.TokenTypes(), e.width)
	}
	e.norm.forward(out, s.stats, s.sum)
	e.drop.apply(p, drops, out, out)
	return s
}

// backward takes the gradient at the result, dOut, which it overwrites, and adds the parameters' gradients to into.
// dSum [T D] is zero.
func (e embeddings) backward(p *nn.Pass, s embedded, tokens corpus.Tokens, dSum, dOut []float32, into nn.Gradients) {
	e.drop.apply(p, s.drops, dOut, dOut)
	e.norm.backward(dSum, s.stats, s.sum, dOut, into)
	into.AddRows(e.words, dSum, tokens.IDs)
	into.AddRows(e.positions, dSum, s.positions)
	if e.types != nil {
		if d := into.Of(e.types); d != nil {
			kernel.Scatter(d, dSum, tokens.Rows.TokenTypes(), e.width)
		}
	}
}
