package transformer

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

var (
	_ encoders.Trainable       = (*encoder)(nil)
	_ encoders.Layered         = (*encoder)(nil)
	_ encoders.Saver           = (*encoder)(nil)
	_ encoders.MemoryEstimator = (*encoder)(nil)
)

// encoder is a transformer: embeddings and blocks, one after the other.
type encoder struct {
	config     config
	params     nn.Params
	source     *source // nil from scratch
	embeddings embeddings
	blocks     []block
	relative   *relative     // nil where attention has no biases
	finalNorm  *norm         // of the last states; nil for none
	levels     [][]*nn.Param // parameters of the embeddings, then of each block
	lora       encoders.LoRA // changes of weights, or adapters; of rank 0: none
	precision  nn.Precision  // of the weights: Int8 of a quantized model, else Float32
}

// newEncoder makes a network with its parameters under env.Params, named as in BERT.
func newEncoder(c config, env encoders.Env) (*encoder, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	frozen, err := encoders.FrozenLevels(env.Freeze, c.Layers)
	if err != nil {
		return nil, err
	}
	if c.InitializerRange == 0 {
		c.InitializerRange = 0.02
	}
	e := &encoder{config: c, params: env.Params}
	e.embeddings = newEmbeddings(env.Params, c)
	e.relative = newRelative(env.Params, c)
	e.levels = append(e.levels, slices.Concat(env.Params.In("embeddings").All(),
		env.Params.In("embeddings_project").All(), env.Params.In(relativePart).All()))
	var global, local *rotary
	if c.layout().rotary {
		global, local = newRotary(c, c.GlobalBase), newRotary(c, c.LocalBase)
	}
	for i := range c.Layers {
		at := env.Params.In(layersHere + strconv.Itoa(i))
		b := newBlock(at, c, i)
		b.attention.rotary = global
		if c.Local.has(i) {
			b.attention.rotary, b.attention.window = local, c.Window
		}
		e.blocks = append(e.blocks, b)
		e.levels = append(e.levels, at.All())
	}
	if c.layout().preNorm {
		final := env.Params.In("encoder.LayerNorm")
		n := newNorm(final, c.Width, c)
		e.finalNorm = &n
		e.levels[c.Layers] = append(e.levels[c.Layers], final.All()...)
	}
	for _, level := range e.levels[:frozen] {
		for _, w := range level {
			w.Frozen = true
		}
	}
	return e, nil
}

// Describe implements encoders.Encoder. The layers are the embeddings and the blocks.
func (e *encoder) Describe() encoders.Description {
	d := encoders.Description{
		Width:          e.config.Width,
		Layers:         len(e.levels),
		Attention:      encoders.AttentionMaps{Layers: len(e.blocks), Heads: e.config.Heads},
		MaxTokens:      e.config.maxTokens(),
		WordEmbeddings: e.embeddings.words,
		MixedPrecision: true,
		Recomputes:     true,
		Precision:      e.precision,
	}
	if _, ints := e.embeddings.integers[e.embeddings.words]; ints {
		d.WordEmbeddings = nil
	}
	if e.source != nil {
		d.Files = e.source.files
	}
	return d
}

// Levels implements encoders.Layered.
func (e *encoder) Levels() [][]*nn.Param { return e.levels }

// encoding is what Encode keeps for Backward. Level 0 is the embeddings, level i block i-1.
type encoding struct {
	tokens    corpus.Tokens
	wanted    nn.LayerSet
	lowest    int  // lowest level that Backward goes to: those below keep nothing
	drops     bool // there is dropout in the levels from lowest on
	again     bool // Backward computes the block states again
	embedded  embedded
	blocks    []blockState
	states    [][]float32 // [T D] after each level; those below lowest-1 may share memory
	distances distances
	unnormed  []float32 // [T D] before the final norm; nil where there is none
	stats     []float32 // [T 2] of the final norm
	held      int       // block whose state is in memory, where blocks share it
	memory    gradients
	maps      []float32 // attention maps of one text and block, if they are observed
}

// Encode implements encoders.Encoder.
func (e *encoder) Encode(p *nn.Pass, tokens corpus.Tokens, wanted nn.LayerSet) ([][]float32, error) {
	lowest := len(e.levels)
	if p.Training {
		lowest = encoders.LowestLearning(e.levels, (*nn.Param).LearnsNow)
	}
	return e.encode(p, tokens, nil, lowest, wanted)
}

// encode is Encode, with words [T E] in place of the tokens' word embeddings unless it is nil, for a Backward down to
// level lowest.
func (e *encoder) encode(p *nn.Pass, tokens corpus.Tokens, words []float32, lowest int,
	wanted nn.LayerSet) ([][]float32, error) {
	if err := e.check(tokens); err != nil {
		return nil, err
	}
	s, reused := p.Reuse(e).(*encoding)
	if !reused {
		s = &encoding{states: make([][]float32, len(e.levels)), blocks: make([]blockState, len(e.blocks))}
	}
	s.tokens, s.wanted, s.lowest, s.drops, s.again = tokens, wanted, lowest, p.Training, p.Recompute
	e.allot(p, s)
	s.embedded = e.embeddings.forward(p, s.embedded, s.states[0], tokens, words, s.drops && lowest == 0)
	rows := e.lastRows(p, s)
	for i, b := range e.blocks {
		if i == len(e.blocks)-1 && len(rows) > 0 {
			b.forwardRows(p, s.blocks[i], e.out(s, i), s.states[i], tokens.Rows.Starts, rows)
		} else {
			b.forward(p, s.blocks[i], e.out(s, i), s.states[i], tokens.Rows.Starts)
		}
		if p.Observed(nn.AttentionMaps(i)) {
			e.showAttention(p, s, i)
		}
	}
	if e.finalNorm != nil {
		e.finalNorm.forward(s.states[len(e.blocks)], s.stats, s.unnormed)
	}
	p.Put(e, s)
	if wanted == nn.AllLayers {
		return s.states, nil
	}
	return s.states[len(e.blocks):], nil
}

// check returns an error for tokens, positions and types that the network has no embedding for.
func (e *encoder) check(tokens corpus.Tokens) error {
	c, rows, types := e.config, tokens.Rows, tokens.Rows.TokenTypes()
	if rows.Tokens() != len(tokens.IDs) || len(types) != len(tokens.IDs) {
		panic("transformer: rows do not fit the tokens")
	}
	if err := encoders.CheckTokens(tokens, c.Vocabulary, c.maxTokens()); err != nil {
		return err
	}
	for b := range rows.Texts() {
		for _, t := range types[rows.Starts[b]:rows.Starts[b+1]] {
			if c.Types > 1 && (t < 0 || int(t) >= c.Types) {
				return fmt.Errorf("text %d of the batch: the encoder has no token type %d; it has %d, counted from 0",
					b+1, t, c.Types)
			}
		}
	}
	return e.checkWords(tokens.IDs)
}

// out returns the memory for the result of a block.
func (e *encoder) out(s *encoding, block int) []float32 {
	if e.finalNorm != nil && block == len(e.blocks)-1 {
		return s.unnormed
	}
	return s.states[block+1]
}

// allot allocates memory for each level. Levels share memory whose values are not read again.
func (e *encoder) allot(p *nn.Pass, s *encoding) {
	rows := len(s.tokens.IDs)
	s.memory, s.held, s.maps = gradients{}, len(e.blocks)-1, nil
	s.states[0] = p.Scratch(rows * e.config.Width)
	s.distances = e.distances(p, s)
	if e.finalNorm != nil {
		s.unnormed, s.stats = p.Scratch(rows*e.config.Width), p.Scratch(2*rows)
	}
	for i := range e.blocks {
		learns := i+1 >= s.lowest
		if i > 0 && !learns && s.wanted == nn.LastLayer {
			s.states[i+1] = s.states[i-1]
		} else {
			s.states[i+1] = p.Scratch(rows * e.config.Width)
		}
		if i > 0 && (!learns || s.again) {
			s.blocks[i] = s.blocks[i-1]
		} else {
			s.blocks[i] = newBlockState(p, e.config, rows)
		}
		s.blocks[i].drops, s.blocks[i].attended.distances = learns && s.drops, s.distances
	}
}

// showAttention passes the attention maps of a block, [heads t t] of each text, to their observers.
func (e *encoder) showAttention(p *nn.Pass, s *encoding, block int) {
	starts, heads := s.tokens.Rows.Starts, e.config.Heads
	if s.maps == nil {
		longest := 0
		for b := range s.tokens.Rows.Texts() {
			longest = max(longest, starts[b+1]-starts[b])
		}
		s.maps = p.Scratch(heads * longest * longest)
	}
	a := s.blocks[block].attended
	weights := e.blocks[block].attention.kernel(p, s.distances, starts, false)
	for b := range s.tokens.Rows.Texts() {
		t := starts[b+1] - starts[b]
		maps := s.maps[:heads*t*t]
		weights.Weights(maps, a.query, a.key, b)
		p.Emit(nn.AttentionMaps(block), b, []int{heads, t, t}, maps)
	}
}
