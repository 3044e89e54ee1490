package transformer

import (
	"cmp"
	"fmt"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// config is a network's sizes and constants.
type config struct {
	Layout           string // name of a layout, such as "bert"
	Vocabulary       int    // token ids
	Layers           int
	Width            int // D
	Embedding        int // width of the embeddings E, which are projected to D; 0: D
	Heads            int // of attention; they divide Width
	FeedForward      int // F
	MaxPositions     int // rows of the table of positions, or tokens of the longest text
	Padding          int // id of the padding token, where the layout counts positions from it
	Buckets          int // of distances, for which attention has biases; 0: none
	Types            int // token types; 0: none, as in DistilBERT
	Epsilon          float64
	Dropout          float64 // rate for hidden states
	AttentionDropout float64 // rate for attention weights
	EmbeddingDropout float64 // rate for the first states, where the layout has one of its own
	Activation       string  // "gelu": with erf, not its approximations
	InitializerRange float64 // standard deviation of initial weights; 0: BERT's, 0.02

	Local                 layerSet // layers whose attention is in windows
	Window                int      // tokens at each side of a token that these layers read
	GlobalBase, LocalBase float64  // bases of rotary positions, of the other layers and of these
	NoBias                biases   // parts without biases
}

// biases are parts of a network, which have biases or have none.
type biases struct{ Attention, FeedForward, Norms bool }

// layerSet is a set of layers, by their numbers from 0 on.
type layerSet [maxLayers / 64]uint64

func (s *layerSet) add(layer int) { s[layer/64] |= 1 << (layer % 64) }

func (s *layerSet) has(layer int) bool { return s[layer/64]>>(layer%64)&1 == 1 }

// setDropout sets all rates.
func (c *config) setDropout(rate float64) {
	c.Dropout, c.AttentionDropout, c.EmbeddingDropout = rate, rate, rate
}

// options returns the sizes in c as Options, whose tags have the allowed ranges.
func (c config) options() Options {
	return Options{
		Layers: c.Layers, Width: c.Width, Heads: c.Heads, FeedForward: c.FeedForward, MaxPositions: c.MaxPositions,
		InitializerRange: cmp.Or(c.InitializerRange, defaults.InitializerRange),
	}
}

// check returns an error if no network can be made of c.
func (c config) check() error {
	if findLayout(c.Layout) == nil {
		return fmt.Errorf("layout %q not found; available: %s", c.Layout, layoutNames())
	}
	if c.Activation != "gelu" {
		return fmt.Errorf("activation %q not found; want gelu, the exact one", c.Activation)
	}
	if err := plugin.Check(c.options()); err != nil {
		return err
	}
	if c.Vocabulary < 1 || c.Vocabulary > maxSize {
		return fmt.Errorf("vocabulary is %d; want 1 to %d", c.Vocabulary, maxSize)
	}
	if c.Embedding < 0 || c.Embedding > maxSize {
		return fmt.Errorf("width of the embeddings is %d; want 0 to %d", c.Embedding, maxSize)
	}
	if c.Padding < 0 || c.maxTokens() < 1 {
		return fmt.Errorf("%d positions after that of padding, %d, are none for a text", c.MaxPositions, c.Padding)
	}
	if c.Buckets != 0 && (c.Buckets < relativeBuckets || c.Buckets > maxSize) {
		return fmt.Errorf("buckets of distances is %d; want 0, or %d to %d", c.Buckets, relativeBuckets, maxSize)
	}
	if c.Types < 0 || c.Types > maxTypes {
		return fmt.Errorf("token types is %d; want 0 to %d", c.Types, maxTypes)
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("width %d is not a multiple of %d heads", c.Width, c.Heads)
	}
	if !(c.Epsilon > 0 && c.Epsilon < 1) {
		return fmt.Errorf("the norms' epsilon is %v; want a number above 0 and below 1, such as 1e-12", c.Epsilon)
	}
	if err := c.checkRotary(); err != nil {
		return err
	}
	for _, rate := range []float64{c.Dropout, c.AttentionDropout, c.EmbeddingDropout} {
		if !(rate >= 0 && rate < 1) {
			return fmt.Errorf("dropout is %v; want a rate in [0, 1)", rate)
		}
	}
	if n := c.parameters(); n > encoders.MaxParameters {
		return fmt.Errorf("a network of this size has %d parameters; want at most %d", n, encoders.MaxParameters)
	}
	return nil
}

// wide returns how many linear layers widen the states to FeedForward.
func (c config) wide() int {
	if c.layout().gated {
		return 2
	}
	return 1
}

// checkRotary returns an error if no rotary positions can be made of c.
func (c config) checkRotary() error {
	if !c.layout().rotary {
		return nil
	}
	if c.Width/c.Heads%2 != 0 {
		return fmt.Errorf("width %d of %d heads is odd for each head; rotary positions want an even number", c.Width,
			c.Heads)
	}
	for _, base := range []float64{c.GlobalBase, c.LocalBase} {
		if !isBase(base) {
			return fmt.Errorf("the base of rotary positions is %v; want a number from 1 to 1e12, such as 10000", base)
		}
	}
	if c.Local != (layerSet{}) && (c.Window < 1 || c.Window > maxSize) {
		return fmt.Errorf("the window has %d tokens at each side; want 1 to %d", c.Window, maxSize)
	}
	return nil
}

// embedding returns the width of the embeddings.
func (c config) embedding() int { return cmp.Or(c.Embedding, c.Width) }

// projects reports whether the embeddings are projected to the width of the states.
func (c config) projects() bool { return c.embedding() != c.Width }

// maxTokens returns the length of the longest text.
func (c config) maxTokens() int { return c.MaxPositions - c.firstPosition() }

// firstPosition returns the position of a text's first token.
func (c config) firstPosition() int {
	if c.layout().afterPadding {
		return c.Padding + 1
	}
	return 0
}

// parameters returns the number of the network's parameters, without biases and norms.
func (c config) parameters() int {
	tables := c.Vocabulary + c.Types
	if !c.layout().rotary {
		tables += c.MaxPositions
	}
	if c.projects() {
		tables += c.Width
	}
	return tables*c.embedding() + c.Buckets*c.Heads + c.Layers*c.Width*(4*c.Width+(c.wide()+1)*c.FeedForward)
}
