package transformer

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// embeddings are the first states of tokens: word, position in its text and token type, summed and normalised, and in
// ELECTRA's layout projected to the width of the states.
type embeddings struct {
	words     *nn.Param // [V E]
	positions *nn.Param // [P E]; nil where positions are rotary
	types     *nn.Param // [2 E], in RoBERTa [1 E]; nil where the layout has none
	norm      norm
	drop      dropout
	project   *linear // [E D]; nil where E is D
	width     int     // E

	afterPadding bool  // positions are counted from that of padding on
	padding      int32 // id of the padding token

	integers map[*nn.Param]kernel.Integers // of tables that have them in place of values, in a quantized model
	mapped   bool                          // whether those of the words are in a mapped file
}

func (b *builder) embeddings() embeddings {
	width := b.embedding()
	e := embeddings{width: width, afterPadding: b.layout.afterPadding, padding: int32(b.Padding)}
	e.words = b.table("embeddings.word_embeddings", b.Vocabulary, width)
	if !b.layout.rotary() {
		e.positions = b.table("embeddings.position_embeddings", b.MaxPositions, width)
	}
	if b.Types > 0 {
		e.types = b.table("embeddings.token_type_embeddings", b.Types, width)
	}
	e.norm = b.norm("embeddings.LayerNorm", width)
	e.drop = b.dropout("embeddings", b.Dropout)
	if b.layout.ownEmbeddingDropout {
		e.drop.rate = b.EmbeddingDropout
	}
	if width != b.Width {
		e.project = b.linear("embeddings_project", width, b.Width, true)
	}
	return e
}

// embedded is what the embeddings' forward keeps for backward.
type embedded struct {
	positions []int32   // [T] of each token in its text
	types     []int32   // [T]; nil where the layout has none
	sum       []float32 // [T E]
	stats     []float32 // [T 2]
	normed    []float32 // [T E] input of the projection; nil where there is none
	drops     bool
}

// newEmbedded returns memory for so many rows. That of before, whose sizes are those of the tokens, is used again.
func (e embeddings) newEmbedded(m memory, before embedded, rows int) embedded {
	s := embedded{positions: before.positions[:0], types: before.types[:0],
		sum: m.Scratch(rows * e.width), stats: m.Scratch(2 * rows)}
	if e.project != nil {
		s.normed = m.Scratch(rows * e.width)
	}
	return s
}

// forward writes the states of tokens to out [T D].
func (e embeddings) forward(p pass, s *embedded, out []float32, tokens corpus.Tokens) {
	for b := range tokens.Rows.Texts() {
		s.positions = e.appendPositions(s.positions, tokens.IDs[tokens.Rows.Starts[b]:tokens.Rows.Starts[b+1]])
	}
	if p.Words != nil {
		copy(s.sum, p.Words)
	} else {
		clear(s.sum)
		e.gather(s.sum, e.words, tokens.IDs)
	}
	if e.positions != nil {
		e.gather(s.sum, e.positions, s.positions)
	}
	if e.types != nil {
		s.types = e.appendTypes(s.types, tokens.Rows.TokenTypes())
		e.gather(s.sum, e.types, s.types)
	}
	if e.project == nil {
		e.norm.forward(out, s.stats, s.sum)
		e.drop.apply(p, s.drops, out, out)
		return
	}
	e.norm.forward(s.normed, s.stats, s.sum)
	e.drop.apply(p, s.drops, s.normed, s.normed)
	e.project.forward(p, out, s.normed, kernel.Epilogue{})
}

// gather adds to each row of sum [T E] the row of a table with its index in rows.
func (e embeddings) gather(sum []float32, table *nn.Param, rows []int32) {
	if ints, ok := e.integers[table]; ok {
		kernel.GatherIntegers(sum, ints, rows, e.width)
		return
	}
	kernel.Gather(sum, table.Data, rows, e.width)
}

func (e embeddings) appendPositions(positions, ids []int32) []int32 {
	if !e.afterPadding {
		for i := range ids {
			positions = append(positions, int32(i))
		}
		return positions
	}
	at := e.padding
	for _, id := range ids {
		if id == e.padding {
			positions = append(positions, e.padding)
			continue
		}
		at++
		positions = append(positions, at)
	}
	return positions
}

// appendTypes appends token types to types: zeros where the layout has one, as the texts of a pair are then not told
// apart by types.
func (e embeddings) appendTypes(types []int32, of []int8) []int32 {
	for _, t := range of {
		if e.types.Shape[0] == 1 {
			t = 0
		}
		types = append(types, int32(t))
	}
	return types
}

// gradients returns memory for backward: of [T E] where the embeddings are projected.
func (e embeddings) gradients(m memory, rows int) (made [2][]float32) {
	if e.project != nil {
		made = [2][]float32{m.Scratch(rows * e.width), m.Scratch(rows * e.width)}
	}
	return made
}

// backward takes the gradient at the result, dOut, which it overwrites, and adds the parameters' gradients to into. It
// returns the gradient at the word embeddings of the tokens [T E]. dSum [T D] is zero, memory is that of gradients.
func (e embeddings) backward(p pass, s embedded, memory [2][]float32, tokens corpus.Tokens, dSum, dOut []float32,
	into nn.Gradients) []float32 {
	if e.project != nil {
		e.project.backward(p, s.normed, dOut, into)
		e.project.backwardTo(p, memory[1], dOut, kernel.StartAtZero, kernel.Epilogue{})
		dSum, dOut = memory[0], memory[1]
		clear(dSum)
	}
	e.drop.apply(p, s.drops, dOut, dOut)
	e.norm.backward(dSum, s.stats, s.sum, dOut, into)
	into.AddRows(e.words, dSum, tokens.IDs)
	if e.positions != nil {
		into.AddRows(e.positions, dSum, s.positions)
	}
	if e.types != nil {
		if d := into.Of(e.types); d != nil {
			kernel.Scatter(d, dSum, s.types, e.width)
		}
	}
	return dSum
}
