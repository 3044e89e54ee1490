// Package transformer is a transformer encoder, opened in the layouts of published models or made from scratch, forward
// and backward by hand on packed rows. A layout is declared in a file of its own: layouts_NAME.go.
package transformer

import (
	"fmt"
	"math"
	"slices"
	"strconv"

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
	c := config{
		Layout: "bert", Vocabulary: env.Vocabulary, Layers: o.Layers, Width: o.Width, Heads: o.Heads,
		FeedForward: o.FeedForward, MaxPositions: o.MaxPositions, Types: 2,
		Epsilon: 1e-12, Dropout: 0.1, AttentionDropout: 0.1, Activation: "gelu", // BERT's
		InitializerRange: o.InitializerRange,
	}
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
		Levels:         e.levels,
		MixedPrecision: true,
		Recomputes:     true,
		Precision:      e.precision,

		Backward:  e.backward,
		Words:     &encoders.Words{Of: e.wordsOf, Encode: e.encodeWords, Backward: e.backwardWords},
		Save:      e.save,
		Copy:      e.copied,
		Quantized: e.quantized,
		Memory:    e.memory,
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

// gradients is memory for Backward, which may be called several times.
type gradients struct {
	states     [2][]float32 // [T D] at the states above and below a block
	embeddings [2][]float32 // [T E] before and after the embeddings' norm, where they are projected
	block      blockGradients
}

// backward is Description.Backward.
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
	e.backwardTo(p, s, at, lowest, into)
}

// backwardTo goes back from the gradients at the states to level lowest. It returns that at the word embeddings [T E],
// nil if lowest is not 0.
func (e *encoder) backwardTo(p *nn.Pass, s *encoding, at [][]float32, lowest int, into nn.Gradients) []float32 {
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

// wordsOf is Words.Of.
func (e *encoder) wordsOf(ids []int32) ([]float32, error) {
	one := corpus.Tokens{IDs: ids, Rows: nn.Rows{Starts: []int{0, len(ids)}, Example: []int{0}}}
	if err := encoders.CheckTokens(one, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	if err := e.checkWords(ids); err != nil {
		return nil, err
	}
	words := make([]float32, len(ids)*e.embeddings.width)
	gather(e.embeddings, words, e.embeddings.words, ids)
	return words, nil
}

// encodeWords is Words.Encode.
func (e *encoder) encodeWords(p *nn.Pass, tokens corpus.Tokens, words []float32,
	wanted nn.LayerSet) ([][]float32, error) {
	if p.Training || len(words) != len(tokens.IDs)*e.embeddings.width {
		panic("transformer: words are encoded in training, or do not fit the tokens")
	}
	return e.encode(p, tokens, words, 0, wanted)
}

// backwardWords is Words.Backward.
func (e *encoder) backwardWords(p *nn.Pass, at [][]float32) []float32 {
	s, ok := p.Get(e).(*encoding)
	if !ok || s.lowest > 0 {
		panic("transformer: a gradient at the words of a pass that did not encode words")
	}
	return e.backwardTo(p, s, at, 0, nn.Gradients{})
}

// memory is Description.Memory: it counts the floats that Encode and Backward allocate in a pass (allot,
// newBlockState, newBlockGradients), the attention maps of one text and layer where they are observed, and the weights
// that Encode packs and merges (linear.product).
func (e *encoder) memory(b encoders.Workload) int64 {
	const float = 4 // bytes
	rows := int64(b.Tokens)
	state := rows * int64(e.config.Width)      // [T D]
	wide := rows * int64(e.config.FeedForward) // [T F]
	stats := 2 * rows                          // [T 2]
	normalizers := rows * int64(e.config.Heads)
	block := 7*state + int64(e.config.wide()+1)*wide + 2*stats + normalizers // blockState
	gradients := 3*state + max(int64(e.config.wide())*wide, 3*state)         // blockGradients

	lowest := len(e.levels)
	if b.Training {
		lowest = encoders.LowestLearning(e.levels, (*nn.Param).Learns)
	}
	if b.Words {
		lowest = 0
	}
	embedding := rows * int64(e.config.embedding()) // [T E]
	floats := embedding + stats + state             // the sum of the embeddings, and the states made of it
	floats += int64(e.config.Heads) * int64(b.Mapped) * int64(b.Mapped)
	if e.relative != nil {
		bias := int64(e.relative.biasSize(e.reach(b.Tokens)))
		floats += bias
		if lowest == 0 {
			floats += bias // its gradient
		}
	}
	if e.finalNorm != nil {
		floats += state + stats
	}
	if e.config.projects() {
		floats += embedding // normalised
		if lowest == 0 {
			floats += 2 * embedding // embeddings.gradients
		}
	}
	for i := range e.blocks {
		learns := i+1 >= lowest
		if i == 0 || learns || b.Layers == nn.AllLayers {
			floats += state
		}
		if i == 0 || learns && !b.Recompute {
			floats += block
		}
	}
	if lowest < len(e.levels) {
		floats += 2*state + gradients
	}
	return float*floats + e.packedMemory(b.Training)
}

// packedMemory returns the size of the packed and merged weights that linear.product keeps, in bytes.
func (e *encoder) packedMemory(training bool) int64 {
	bytes := int64(0)
	if l := e.embeddings.project; l != nil && !l.isPacked() && (!training || !l.learns()) {
		bytes += 4 * int64(len(l.weight.Data))
	}
	for i := range e.blocks {
		for _, name := range e.blocks[i].targets() {
			l := e.blocks[i].target(name)
			if l.isPacked() {
				continue
			}
			if !training || !l.learns() {
				bytes += 4 * int64(len(l.weight.Data))
			}
			if l.lora != nil { // its merged weight
				bytes += 4 * int64(len(l.weight.Data))
			}
			for range l.adapters { // as above
				bytes += 4 * int64(len(l.weight.Data))
				if !training {
					bytes += 4 * int64(len(l.weight.Data))
				}
			}
		}
	}
	return bytes
}
