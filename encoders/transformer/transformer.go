// Package transformer is a transformer encoder, opened in the layouts of published models or made from scratch, forward
// and backward by hand on packed rows. A layout is declared in layouts_bert.go, where it is BERT's with few differences,
// or in a file of its own, and listed in layouts.
package transformer

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

func init() { encoders.Register("transformer", defaults, New) }

var defaults = Options{Layers: 4, Width: 256, Heads: 4, FeedForward: 1024, MaxPositions: 512, InitializerRange: 0.02}

// Options are the sizes of an encoder that is trained from scratch. A pretrained encoder has the sizes in its
// config.json.
type Options struct {
	Layers       int `yaml:"layers" range:"[1,1024]" doc:"number of layers"`
	Width        int `yaml:"width" range:"[1,16777216]" doc:"width of the hidden states, in numbers"`
	Heads        int `yaml:"heads" range:"[1,16777216]" doc:"attention heads of a layer; the width is a multiple of it"`
	FeedForward  int `yaml:"feed_forward" range:"[1,16777216]" doc:"width of the feed-forward layer, in numbers"`
	MaxPositions int `yaml:"max_positions" range:"[1,16777216]" doc:"length of the longest text, in tokens"`
	// A narrow encoder learns the order of words sooner with a larger deviation than BERT's 0.02, which fits a width of
	// 768.
	InitializerRange float64 `yaml:"initializer_range" range:"(0,1]" doc:"standard deviation of the initial weights"`
}

// SizedByBase says that a base model has all the sizes.
func (Options) SizedByBase() {}

// New opens the encoder at env.Model, or makes one from scratch where that is "".
func New(o Options, env encoders.Env) (encoders.Encoder, error) {
	if env.Device != "" && env.Device != encoders.CPU {
		return onDevice(o, env)
	}
	return onProcessor(o, env)
}

func onProcessor(o Options, env encoders.Env) (encoders.Encoder, error) {
	e, err := newOrOpened(o, env)
	if err == nil && env.LoRA.Rank > 0 {
		err = e.addLoRA(env.LoRA, env.Params.In("lora"), env.Adapters...)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func newOrOpened(o Options, env encoders.Env) (*encoder, error) {
	if env.Model != "" {
		return open(env)
	}
	if env.MaxLength > o.MaxPositions {
		return nil, fmt.Errorf("max_positions is %d, but max_length is %d", o.MaxPositions, env.MaxLength)
	}
	c := bertLayout.defaults()
	c.Vocabulary, c.Layers, c.Width, c.Heads = env.Vocabulary, o.Layers, o.Width, o.Heads
	c.FeedForward, c.MaxPositions, c.InitializerRange = o.FeedForward, o.MaxPositions, o.InitializerRange
	if env.DropoutSet {
		c.setDropout(env.Dropout)
	}
	return newEncoder(c, env)
}

// encoder is the transformer encoder in the layouts of BERT (Devlin et al. 2019), DistilBERT (Sanh et al.
// 2019), RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020), CamemBERT (Martin et al. 2020), ELECTRA (Clark et
// al. 2020), MPNet (Song et al. 2020) and ModernBERT (Warner et al. 2024), forward and backward by hand on packed rows.
// A token's first state is the sum of the embeddings of word, position and type, normalised; each layer makes of the
// states x (Vaswani et al. 2017, post-norm)
//
//	a = LayerNorm(x + W_O·Concat_heads(softmax(Q·Kᵀ/√d)·V))    Q, K, V = x·W_Q, x·W_K, x·W_V
//	y = LayerNorm(a + W_2·GELU(W_1·a))
//
// with biases on all W, GELU by the error function, and dropout in training on the first states, on the softmax, and
// before each sum; DistilBERT has no types, and no dropout on attention's output. RoBERTa's kin count positions from
// the padding token's id + 1 on; ELECTRA projects the first states to the width of the layers; MPNet adds to the
// logits of attention a bias for the distance between two tokens, and has no types. LayerNorm's ε is that of the
// encoder's config.json; where it has none, and in DistilBERT, 1e-12, in ModernBERT 1e-5. ModernBERT's layers are
//
//	a = x + W_O·Concat_heads(softmax(R(Q)·R(K)ᵀ/√d)·V)    Q, K, V = LayerNorm(x)·W_Q, …
//	y = a + W_2·(GELU(W_1·LayerNorm(a))·(W_gate·LayerNorm(a)))
//
// where R rotates queries and keys by their positions, in most layers a token reads only the tokens of a window around
// it, and the last states are normalised. Each layer is a small type with a forward and a backward method.
type encoder struct {
	config     config
	params     nn.Params
	source     *source // nil from scratch
	embeddings embeddings
	blocks     []block
	relative   *relative     // nil where attention has no biases
	finalNorm  *norm         // of the last states; nil for none
	parameters []parameter   // all, but changes of weights
	levels     [][]*nn.Param // parameters of the embeddings, then of each block
	lora       encoders.LoRA // changes of weights, or adapters; of rank 0: none
	precision  nn.Precision  // of the weights: Int8 of a quantized model, else Float32
}

// newEncoder makes a network with its parameters under env.Params, named as in BERT.
func newEncoder(c config, env encoders.Env) (*encoder, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.InitializerRange == 0 {
		c.InitializerRange = 0.02
	}
	b := &builder{config: c, params: env.Params}
	e := b.network()
	return e, encoders.Freeze(env.Freeze, e.levels)
}

// network makes the parts of a network, in the order of its parameters.
func (b *builder) network() *encoder {
	e := &encoder{config: b.config, params: b.params}
	e.embeddings = b.embeddings()
	e.relative = b.relative()
	if b.layout.rotary() {
		b.global = &rotary{base: b.GlobalBase, heads: b.Heads, width: b.Width}
		b.local = &rotary{base: b.LocalBase, heads: b.Heads, width: b.Width}
	}
	for i := range b.Layers {
		b.level = i + 1
		e.blocks = append(e.blocks, b.block(i))
	}
	if b.layout.preNorm() {
		n := b.norm("encoder.LayerNorm", b.Width)
		e.finalNorm = &n
	}
	e.parameters, e.levels = b.list, make([][]*nn.Param, b.Layers+1)
	for _, w := range b.list {
		e.levels[w.level] = append(e.levels[w.level], w.Param)
	}
	return e
}

// Describe implements encoders.Encoder. The layers are the embeddings and the blocks.
func (e *encoder) Describe() encoders.Description {
	d := encoders.Description{
		Width:          e.config.Width,
		Layers:         len(e.levels),
		Attention:      encoders.AttentionMaps{Layers: len(e.blocks), Heads: e.config.Heads},
		MaxTokens:      e.config.maxTokens(),
		WordEmbeddings: e.embeddings.words,
		Levels:         e.levels,
		MixedPrecision: true,
		Recomputes:     true,
		ChoosesLayers:  true,
		Precision:      e.precision,

		Backward:  e.backward,
		Words:     &encoders.Words{Embed: e.embedWords, Backward: e.backwardWords},
		Save:      e.save,
		Quantized: e.quantized,
		Memory:    e.estimate,
		Close:     e.close,
	}
	if _, ints := e.embeddings.integers[e.embeddings.words]; ints {
		d.WordEmbeddings = nil
	}
	if e.source != nil {
		d.Files = e.source.files
	}
	return d
}

// pass is a pass with how the encoder computes in it.
type pass struct {
	*nn.Pass
	encoders.Mode
}

// encoding is what Encode keeps for Backward. Level 0 is the embeddings, level i block i-1.
type encoding struct {
	tokens    corpus.Tokens
	mode      encoders.Mode
	lowest    int  // lowest level that Backward goes to: those below keep nothing
	drops     bool // the pass trains: what has a dropout rate drops, and Backward may follow
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
func (e *encoder) Encode(in *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if mode.Words != nil && (in.Training || len(mode.Words) != len(tokens.IDs)*e.embeddings.width) {
		panic("transformer: words are encoded in training, or do not fit the tokens")
	}
	if err := e.check(tokens); err != nil {
		return nil, err
	}
	if err := e.checkWords(tokens.IDs); err != nil {
		return nil, err
	}
	p := pass{in, mode}
	s, reused := p.Reuse(e).(*encoding)
	if !reused {
		s = e.newEncoding()
	}
	s.tokens, s.mode, s.lowest, s.drops = tokens, mode, len(e.levels), p.Training
	switch {
	case p.Training:
		s.lowest = encoders.LowestLearning(e.levels, (*nn.Param).LearnsNow)
	case mode.Words != nil:
		s.lowest = 0
	}
	e.allot(in, s, len(tokens.IDs))
	e.embeddings.forward(p, &s.embedded, s.states[0], tokens)
	if e.relative != nil {
		e.relative.expand(s.distances.bias, s.distances.reach)
	}
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
	if mode.Layers == nn.AllLayers {
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
	return nil
}

func (e *encoder) out(s *encoding, block int) []float32 {
	if e.finalNorm != nil && block == len(e.blocks)-1 {
		return s.unnormed
	}
	return s.states[block+1]
}

// memory allocates floats, or only counts them.
type memory interface{ Scratch(n int) []float32 }

// counter is a memory of as many floats as were to be allocated.
type counter int64

func (c *counter) Scratch(n int) []float32 {
	*c += counter(n)
	return nil
}

func (e *encoder) newEncoding() *encoding {
	return &encoding{states: make([][]float32, len(e.levels)), blocks: make([]blockState, len(e.blocks))}
}

// allot allocates memory for each level of so many tokens. Levels share memory whose values are not read again.
func (e *encoder) allot(m memory, s *encoding, rows int) {
	size := rows * e.config.Width
	s.memory, s.held, s.maps = gradients{}, len(e.blocks)-1, nil
	s.states[0] = m.Scratch(size)
	s.distances = e.relative.newDistances(m, e.reach(rows), s.lowest == 0)
	if e.finalNorm != nil {
		s.unnormed, s.stats = m.Scratch(size), m.Scratch(2*rows)
	}
	for i := range e.blocks {
		learns := i+1 >= s.lowest
		if i > 0 && !learns && s.mode.Layers == nn.LastLayer {
			s.states[i+1] = s.states[i-1]
		} else {
			s.states[i+1] = m.Scratch(size)
		}
		if i > 0 && (!learns || s.mode.Recompute) {
			s.blocks[i] = s.blocks[i-1]
		} else {
			s.blocks[i] = newBlockState(m, e.config, rows)
		}
		s.blocks[i].drops, s.blocks[i].attended.distances = learns && s.drops, s.distances
	}
	s.embedded = e.embeddings.newEmbedded(m, s.embedded, rows)
	s.embedded.drops = s.drops && s.lowest == 0
}

// newMaps returns memory for the attention maps of one text and block.
func (e *encoder) newMaps(m memory, tokens int) []float32 {
	return m.Scratch(e.config.Heads * tokens * tokens)
}

// showAttention passes the attention maps of a block, [heads t t] of each text, to their observers.
func (e *encoder) showAttention(p pass, s *encoding, block int) {
	starts, heads := s.tokens.Rows.Starts, e.config.Heads
	if s.maps == nil {
		longest := 0
		for b := range s.tokens.Rows.Texts() {
			longest = max(longest, starts[b+1]-starts[b])
		}
		s.maps = e.newMaps(p.Pass, longest)
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

// lastRows returns the rows of the last block's states that are computed; none: all.
func (e *encoder) lastRows(p pass, s *encoding) []int {
	if p.Training || s.lowest < len(e.levels) || p.Layers == nn.AllLayers || len(p.Read) == len(s.tokens.IDs) {
		return nil
	}
	return p.Read
}

// forwardRows is forward for one or more rows of out; the others are NaN. All tokens are read, so that only what
// follows attention, most of a block's products, is computed for fewer rows. There is no backward after it.
func (b block) forwardRows(p pass, s blockState, out, x []float32, starts, rows []int) {
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

// gradients is memory for Backward, which may be called several times.
type gradients struct {
	states     [2][]float32 // [T D] at the states above and below a block
	embeddings [2][]float32 // [T E] before and after the embeddings' norm, where they are projected
	block      blockGradients
}

func (e *encoder) newGradients(m memory, lowest, rows int) gradients {
	size := rows * e.config.Width
	g := gradients{states: [2][]float32{m.Scratch(size), m.Scratch(size)},
		block: newBlockGradients(m, e.config, rows)}
	if lowest == 0 {
		g.embeddings = e.embeddings.gradients(m, rows)
	}
	return g
}

func (e *encoder) backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
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
	e.backwardTo(pass{p, s.mode}, s, at, lowest, into)
}

// backwardTo goes back from the gradients at the states to level lowest. It returns that at the word embeddings [T E],
// nil if lowest is not 0.
func (e *encoder) backwardTo(p pass, s *encoding, at [][]float32, lowest int, into nn.Gradients) []float32 {
	if s.memory.states[0] == nil {
		s.memory = e.newGradients(p.Pass, s.lowest, len(s.tokens.IDs))
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
		if s.mode.Recompute && s.held != i-1 {
			b.forward(p, state, e.out(s, i-1), s.states[i-1], starts)
			s.held = i - 1
		}
		b.backward(p, state, s.memory.block, below, s.states[i-1], above, starts, into)
		into.Ready(e.levels[i]...)
		above, below = below, above
	}
	return nil
}

func (e *encoder) embedWords(ids []int32) ([]float32, error) {
	one := corpus.Tokens{IDs: ids, Rows: nn.Rows{Starts: []int{0, len(ids)}, Example: []int{0}}}
	if err := encoders.CheckTokens(one, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	if err := e.checkWords(ids); err != nil {
		return nil, err
	}
	words := make([]float32, len(ids)*e.embeddings.width)
	e.embeddings.gather(words, e.embeddings.words, ids)
	return words, nil
}

func (e *encoder) backwardWords(p *nn.Pass, at [][]float32) []float32 {
	s, ok := p.Get(e).(*encoding)
	if !ok || s.lowest > 0 {
		panic("transformer: a gradient at the words of a pass that did not encode words")
	}
	return e.backwardTo(pass{p, s.mode}, s, at, 0, nn.Gradients{})
}

// estimate is Description.Memory: it runs what allocates the memory of a pass with one that only counts it, and adds the
// weights that Encode packs and merges (linear.product).
func (e *encoder) estimate(b encoders.Workload) int64 {
	s := e.newEncoding()
	s.mode, s.lowest = encoders.Mode{Layers: b.Layers, Recompute: b.Recompute}, b.Lowest(e.levels)
	var floats counter
	e.allot(&floats, s, b.Tokens)
	e.newMaps(&floats, b.Mapped)
	if s.lowest < len(e.levels) {
		e.newGradients(&floats, s.lowest, b.Tokens)
	}
	return 4*int64(floats) + e.packedMemory(b.Training)
}

// packedMemory returns the size of the packed and merged weights that linear.product keeps, in bytes.
func (e *encoder) packedMemory(training bool) int64 {
	floats := 0
	for _, w := range e.parameters {
		l := w.linear
		if l == nil || l.isPacked() {
			continue
		}
		size := len(l.weight.Data)
		if !training || !l.learns() {
			floats += size
		}
		if l.lora != nil { // its merged weight
			floats += size
		}
		for range l.adapters { // as above
			floats += size
			if !training {
				floats += size
			}
		}
	}
	return 4 * int64(floats)
}
