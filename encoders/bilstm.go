package encoders

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() { Register("bilstm", bilstmDefaults, NewBiLSTM) }

var bilstmDefaults = BiLSTMOptions{Embedding: 256, Layers: 2, Hidden: 256}

// BiLSTMOptions are the sizes of an encoder that is trained from scratch. An opened encoder has the sizes in its
// config.json, within the same ranges.
type BiLSTMOptions struct {
	Embedding int `yaml:"embedding" range:"[1,16384]" doc:"width of the word embeddings, in numbers"`
	Layers    int `yaml:"layers" range:"[1,64]" doc:"number of bidirectional LSTM layers"`
	Hidden    int `yaml:"hidden" range:"[1,8192]" doc:"width of each direction's states; the hidden states have both"`
}

// SizedByBase says that a base model has all the sizes.
func (BiLSTMOptions) SizedByBase() {}

// bilstm is word embeddings and bidirectional LSTM layers (Hochreiter & Schmidhuber 1997), with dropout between them
// (Focus Mechanism's encoder). Each direction of a layer reads a token's x and its own h' and c' of the token before:
//
//	i, f, o = σ(x·W + h'·R + b)    a = tanh(x·W_a + h'·R_a + b_a)    c = f·c' + i·a    h = o·tanh(c)
//
// with W, R and b of each gate its own; tensors have the gates in the order i, f, a, o (PyTorch's i, f, g, o). h' and
// c' are 0 at first. The backward direction reads from the last token to the first. A token's state is the h of both
// directions, the forward one first. The states of all layers are those of the LSTM layers, without the embeddings,
// which have another width.
type bilstm struct {
	config bilstmConfig
	params nn.Params
	words  *nn.Param // [V E]
	layers []*nn.BiLSTM
	drops  []string // key of the dropout before each layer, see nn.Pass.Key
	levels [][]*nn.Param
	files  []string // that it was read from
}

// bilstmConfig is the config.json of a saved encoder.
type bilstmConfig struct {
	Type       string  `json:"model_type"` // bilstm
	Vocabulary int     `json:"vocab_size"`
	Embedding  int     `json:"embedding"`
	Layers     int     `json:"layers"`
	Hidden     int     `json:"hidden"`
	Dropout    float64 `json:"dropout"`
}

// check returns an error for sizes outside the options' ranges, before memory is allocated for them.
func (c bilstmConfig) check() error {
	if c.Type != "bilstm" {
		return fmt.Errorf("model_type is %q; want bilstm", c.Type)
	}
	if err := plugin.Check(BiLSTMOptions{Embedding: c.Embedding, Layers: c.Layers, Hidden: c.Hidden}); err != nil {
		return err
	}
	switch {
	case c.Vocabulary < 1 || c.Vocabulary > 1<<24:
		return fmt.Errorf("vocab_size is %d; want 1 to %d", c.Vocabulary, 1<<24)
	case c.parameters() > MaxParameters:
		return fmt.Errorf("a bilstm of this size has %d parameters; want at most %d", c.parameters(), MaxParameters)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("dropout is %v; want a rate in [0, 1)", c.Dropout)
	}
	return nil
}

// MaxParameters is the largest number of parameters of an encoder, in floats. The largest published BERT has 0.3 of it.
const MaxParameters = 1 << 30

func (c bilstmConfig) parameters() int {
	n, width := c.Vocabulary*c.Embedding, c.Embedding
	for range c.Layers {
		n += nn.BiLSTMSize(width, c.Hidden)
		width = 2 * c.Hidden
	}
	return n
}

// NewBiLSTM opens the encoder saved at env.Model, or makes one from scratch where that is "".
func NewBiLSTM(o BiLSTMOptions, env Env) (Encoder, error) {
	if env.LoRA.Rank > 0 {
		return nil, BadOption("lora", "lora: it changes the weights of a transformer; leave it out")
	}
	c := bilstmConfig{"bilstm", env.Vocabulary, o.Embedding, o.Layers, o.Hidden, 0.1}
	config, weights := filepath.Join(env.Model, "config.json"), filepath.Join(env.Model, "model.safetensors")
	if env.Model != "" {
		c = bilstmConfig{}
		if err := files.ReadJSON(config, files.MaxConfig, &c); err != nil {
			return nil, err
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", config, err)
		}
		if env.Vocabulary > c.Vocabulary {
			return nil, fmt.Errorf("%s: vocab_size is %d, but the tokenizer has %d tokens",
				env.Model, c.Vocabulary, env.Vocabulary)
		}
		env.Params = env.Params.WithoutValues() // the sizes in c have not been compared with the file's yet
	}
	if env.DropoutSet {
		c.Dropout = env.Dropout
	}
	e, err := newBiLSTM(c, env)
	if err != nil || env.Model == "" {
		return e, err
	}
	e.files = []string{config, weights}
	return e, safetensors.ReadParams(weights, "config.json", e.params.All(), e.params)
}

func newBiLSTM(c bilstmConfig, env Env) (*bilstm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	// Embeddings are initialised from normal(0, 1), as in PyTorch.
	words := env.Params.In("embeddings").Table("weight", 1, c.Vocabulary, c.Embedding)
	e := &bilstm{config: c, params: env.Params, words: words}
	e.levels = append(e.levels, []*nn.Param{e.words})
	width := c.Embedding
	for i := range c.Layers {
		at := env.Params.In("layer").In(strconv.Itoa(i))
		e.layers = append(e.layers, nn.NewBiLSTM(at, width, c.Hidden))
		e.drops = append(e.drops, at.In("dropout").Path())
		e.levels = append(e.levels, at.All())
		width = 2 * c.Hidden
	}
	return e, Freeze(env.Freeze, e.levels)
}

// Describe implements Encoder. The states are those of both directions.
func (e *bilstm) Describe() Description {
	return Description{
		Width: e.width(), Layers: len(e.layers), Files: e.files, WordEmbeddings: e.words, Levels: e.levels,
		Backward: e.backward, Words: &Words{Embed: e.embedWords, Backward: e.backwardWords},
		Save: e.save, Memory: e.memory,
	}
}

func (e *bilstm) width() int { return 2 * e.config.Hidden }

// bilstmStates is what Encode keeps for Backward.
type bilstmStates struct {
	ids    []int32
	layers []*nn.LSTMStates
	rate   []float64 // of the dropout before each layer
}

// Encode implements Encoder.
func (e *bilstm) Encode(p *nn.Pass, tokens corpus.Tokens, mode Mode) ([][]float32, error) {
	if mode.Words != nil && (p.Training || len(mode.Words) != len(tokens.IDs)*e.config.Embedding) {
		panic("encoders: words of a bilstm are encoded in training, or do not fit the tokens")
	}
	if err := CheckTokens(tokens, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	x := mode.Words // [T E]
	if x == nil {
		x = p.Floats(len(tokens.IDs) * e.config.Embedding)
		kernel.Gather(x, e.words.Data, tokens.IDs, e.config.Embedding)
	}
	s := &bilstmStates{ids: tokens.IDs}
	learning := len(e.levels)
	if p.Training {
		learning = LowestLearning(e.levels, (*nn.Param).LearnsNow)
	}
	var all [][]float32
	for i, layer := range e.layers {
		rate := 0.0
		if i > 0 && i+1 >= learning {
			rate = e.config.Dropout
		}
		if rate > 0 {
			dropped := p.Scratch(len(x))
			kernel.Dropout(dropped, x, p.Key(e.drops[i]), rate)
			x = dropped
		}
		states := layer.Forward(p, x, tokens.Rows)
		s.layers, s.rate = append(s.layers, states), append(s.rate, rate)
		x = states.Out // [T 2H]
		all = append(all, x)
	}
	p.Put(e, s)
	if mode.Layers == nn.AllLayers {
		return all, nil
	}
	return all[len(all)-1:], nil
}

func (e *bilstm) backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	s, ok := p.Get(e).(*bilstmStates)
	if !ok {
		panic("encoders: Backward of a bilstm's pass that was not encoded")
	}
	e.backwardTo(p, s, at, LowestLearning(e.levels, into.Has), into)
}

// backwardTo goes back from the gradients at the states to level lowest. It returns that at the word embeddings [T E],
// nil if lowest is not 0.
func (e *bilstm) backwardTo(p *nn.Pass, s *bilstmStates, at [][]float32, lowest int, into nn.Gradients) []float32 {
	above := p.Floats(len(s.ids) * e.width()) // gradient at the layer's states
	for i := len(e.layers) - 1; i+1 >= max(1, lowest); i-- {
		// at has one gradient for the last layer, or one for each layer.
		if j := i - len(e.layers) + len(at); j >= 0 && at[j] != nil {
			kernel.Add(above, at[j])
		}
		var below []float32
		if i >= lowest {
			below = p.Floats(len(s.ids) * e.layers[i].Input[0].Shape[0])
		}
		e.layers[i].Backward(p, s.layers[i], below, above, into.Of)
		into.Ready(e.levels[i+1]...)
		if below == nil {
			return nil
		}
		if above = below; s.rate[i] > 0 {
			above = p.Floats(len(below))
			kernel.DropoutBackward(above, below, p.Key(e.drops[i]), s.rate[i])
		}
	}
	if lowest > 0 {
		return nil
	}
	into.AddRows(e.words, above, s.ids)
	into.Ready(e.words)
	return above
}

func (e *bilstm) memory(b Workload) int64 {
	rows, hidden := int64(b.Tokens), int64(e.config.Hidden)
	width := int64(e.config.Embedding)
	lowest := b.Lowest(e.levels)
	floats := rows * width
	for i := range e.layers {
		floats += rows * (width + 2*hidden + 2*4*hidden + 2*hidden) // dropped inputs, states, gates, cells
		floats += 2 * 4 * hidden * hidden                           // recurrent weights, packed
		if i+1 >= lowest {
			floats += rows*(2*width+2*4*hidden+hidden) + 2*4*hidden*hidden // packed for Backward, too
		}
		width = 2 * hidden
	}
	return 4 * floats
}

func (e *bilstm) embedWords(ids []int32) ([]float32, error) {
	one := corpus.Tokens{IDs: ids, Rows: nn.Rows{Starts: []int{0, len(ids)}, Example: []int{0}}}
	if err := CheckTokens(one, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	words := make([]float32, len(ids)*e.config.Embedding)
	kernel.Gather(words, e.words.Data, ids, e.config.Embedding)
	return words, nil
}

func (e *bilstm) backwardWords(p *nn.Pass, at [][]float32) []float32 {
	s, ok := p.Get(e).(*bilstmStates)
	if !ok {
		panic("encoders: a gradient at the words of a bilstm's pass that was not encoded")
	}
	return e.backwardTo(p, s, at, 0, nn.Gradients{})
}

func (e *bilstm) save(copies *nn.Copies) (write func(folder string) error) {
	params := safetensors.CopyParams(e.params.All(), copies)
	return func(folder string) error {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := files.WriteJSON(filepath.Join(folder, "config.json"), e.config); err != nil {
			return err
		}
		return safetensors.WriteParams(filepath.Join(folder, "model.safetensors"), params, e.params)
	}
}
