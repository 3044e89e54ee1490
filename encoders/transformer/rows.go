package transformer

import (
	"math"

	"github.com/jenga-nlp/jenga/nn"
)

// lastRows returns the rows of the last block's states that are computed; none: all.
func (e *encoder) lastRows(p *nn.Pass, s *encoding) []int {
	if p.Training || s.lowest < len(e.levels) || s.wanted == nn.AllLayers || len(p.Read) == len(s.tokens.IDs) {
		return nil
	}
	return p.Read
}

// forwardRows is forward for one or more rows of out; the others are NaN. All tokens are read, so that only what
// follows attention, most of a block's products, is computed for fewer rows. There is no backward after it.
func (b block) forwardRows(p *nn.Pass, s blockState, out, x []float32, starts, rows []int) {
	b.attend(p, s, x, starts)
	tokens := starts[len(starts)-1]
	width := len(x) / tokens
	context := gatherRows(s.attended.value, s.attended.context, rows, width) // queries and keys may be observed
	before := gatherRows(s.attended.context, x, rows, width)
	result := context // the last that is written, when context is not read again
	b.finish(p, s.first(len(rows), tokens), result, context, before)

	nan := float32(math.NaN())
	for i := range out {
		out[i] = nan
	}
	for i, row := range rows {
		copy(out[row*width:], result[i*width:(i+1)*width])
	}
}

// gatherRows copies rows of from [T D] to the first rows of to, and returns these.
func gatherRows(to, from []float32, rows []int, width int) []float32 {
	for i, row := range rows {
		copy(to[i*width:(i+1)*width], from[row*width:])
	}
	return to[:len(rows)*width]
}

// first returns the memory of the first rows, of all that it is for.
func (s blockState) first(rows, all int) blockState {
	cut := func(x []float32) []float32 { return x[:len(x)/all*rows] }
	for i := range s.sums {
		s.sums[i], s.stats[i] = cut(s.sums[i]), cut(s.stats[i])
	}
	s.middle = cut(s.middle)
	s.fed.raised, s.fed.active, s.fed.gate = cut(s.fed.raised), cut(s.fed.active), cut(s.fed.gate)
	return s
}
