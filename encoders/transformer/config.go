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
	Heads            int // of attention; they divide Width
	FeedForward      int // F
	MaxPositions     int // tokens of the longest text
	Types            int // token types; 0: none, as in DistilBERT
	Epsilon          float64
	Dropout          float64 // rate for hidden states
	AttentionDropout float64 // rate for attention weights
	Activation       string  // "gelu": with erf, not its approximations
	InitializerRange float64 // standard deviation of initial weights; 0: BERT's, 0.02
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
	if c.Types < 0 || c.Types > maxTypes {
		return fmt.Errorf("token types is %d; want 0 to %d", c.Types, maxTypes)
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("width %d is not a multiple of %d heads", c.Width, c.Heads)
	}
	if !(c.Epsilon > 0 && c.Epsilon < 1) {
		return fmt.Errorf("the norms' epsilon is %v; want a number above 0 and below 1, such as 1e-12", c.Epsilon)
	}
	for _, rate := range []float64{c.Dropout, c.AttentionDropout} {
		if !(rate >= 0 && rate < 1) {
			return fmt.Errorf("dropout is %v; want a rate in [0, 1)", rate)
		}
	}
	if n := c.parameters(); n > encoders.MaxParameters {
		return fmt.Errorf("a network of this size has %d parameters; want at most %d", n, encoders.MaxParameters)
	}
	return nil
}

// parameters returns the number of the network's parameters, without biases and norms.
func (c config) parameters() int {
	tables := c.Vocabulary + c.MaxPositions + c.Types
	return tables*c.Width + c.Layers*c.Width*(4*c.Width+2*c.FeedForward)
}
