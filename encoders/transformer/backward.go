package transformer

import (
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// gradients is memory for Backward, which may be called several times.
type gradients struct {
	states     [2][]float32 // [T D] at the states above and below a block
	embeddings [2][]float32 // [T E] before and after the embeddings' norm, where they are projected
	block      blockGradients
}

// Backward implements encoders.Trainable.
func (e *encoder) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	s, ok := p.Get(e).(*encoding)
	if !ok {
		panic("transformer: Backward of a pass that was not encoded")
	}
	lowest := encoders.LowestLearning(e.levels, into.Has)
	if lowest == len(e.levels) {
		return
	}
	if lowest < s.lowest || !s.drops {
		panic("transformer: Backward of a pass that was not training, or to a frozen parameter")
	}
	e.backward(p, s, at, lowest, into)
}

// backward goes back from the gradients at the states to level lowest. It returns that at the word embeddings [T E],
// nil if lowest is not 0.
func (e *encoder) backward(p *nn.Pass, s *encoding, at [][]float32, lowest int, into nn.Gradients) []float32 {
	if s.memory.states[0] == nil {
		rows := len(s.tokens.IDs)
		size := rows * e.config.Width
		s.memory.states = [2][]float32{p.Scratch(size), p.Scratch(size)}
		s.memory.block = newBlockGradients(p, e.config, rows)
		if s.lowest == 0 {
			s.memory.embeddings = e.embeddings.gradients(p, rows)
		}
	}
	above, below := s.memory.states[0], s.memory.states[1]
	clear(above)
	clear(s.distances.dBias)
	for i := len(e.levels) - 1; i >= lowest; i-- {
		// at has one gradient for the last layer, or one for each layer.
		if j := i - len(e.levels) + len(at); j >= 0 && at[j] != nil {
			kernel.Add(above, at[j])
		}
		if i == len(e.blocks) && e.finalNorm != nil {
			clear(below)
			e.finalNorm.backward(below, s.stats, s.unnormed, above, into)
			above, below = below, above
		}
		if i == 0 {
			clear(below)
			if e.relative != nil {
				e.relative.backward(s.distances.dBias, s.distances.reach, into)
			}
			dWords := e.embeddings.backward(p, s.embedded, s.memory.embeddings, s.tokens, below, above, into)
			into.Ready(e.levels[0]...)
			return dWords
		}
		if i == lowest {
			below = nil // no level below learns
		}
		b, state, starts := e.blocks[i-1], s.blocks[i-1], s.tokens.Rows.Starts
		if s.again && s.held != i-1 {
			b.forward(p, state, e.out(s, i-1), s.states[i-1], starts)
			s.held = i - 1
		}
		b.backward(p, state, s.memory.block, below, s.states[i-1], above, starts, into)
		into.Ready(e.levels[i]...)
		above, below = below, above
	}
	return nil
}
