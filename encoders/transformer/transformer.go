// Package transformer is the transformer encoder in the layouts of BERT (Devlin et al. 2019), DistilBERT (Sanh et al.
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
package transformer

import (
	"fmt"

	"github.com/jenga-nlp/jenga/encoders"
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

var _ encoders.SizedByBase = Options{}

// SizedByBase says that a base model has all the sizes.
func (Options) SizedByBase() {}

// CheckBase returns an error for sizes beside a base model, which has its own.
func (o Options) CheckBase() error {
	if o != defaults {
		return encoders.ErrSized
	}
	return nil
}

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
