package transformer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/internal/suggest"
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

// The largest values in a config.json. The first two are in the tags of Options, too.
const (
	maxLayers = 1 << 10
	maxSize   = 1 << 24 // of every other number
	maxTypes  = 128
)

// minTokens is the length of the longest text that every network takes: a token and two special ones.
const minTokens = 3

// readConfig reads a model's config.json. It returns the network's configuration, and all keys unchanged.
func readConfig(path string) (config, map[string]json.RawMessage, error) {
	data, err := regular.ReadFile(path, jsonfile.MaxConfig)
	if err != nil {
		return config{}, nil, err
	}
	var keys map[string]json.RawMessage
	var kind struct {
		Type *string `json:"model_type"`
	}
	if err := jsonfile.Unmarshal(path, data, &keys); err != nil {
		return config{}, nil, err
	}
	if err := jsonfile.Unmarshal(path, data, &kind); err != nil {
		return config{}, nil, err
	}
	if kind.Type == nil {
		return config{}, nil, fmt.Errorf("%s: no model_type; supported: %s", path, layoutNames())
	}
	l := findLayout(*kind.Type)
	if l == nil {
		return config{}, nil, errUnsupported(path, *kind.Type)
	}

	c, refused, err := l.read(path, data)
	if err != nil {
		return config{}, nil, err
	}
	if len(refused) == 0 {
		if err := c.check(); err != nil {
			refused = append(refused, err)
		}
	}
	for i := range refused {
		refused[i] = fmt.Errorf("%s: %w", path, refused[i])
	}
	return c, keys, errors.Join(refused...)
}

type size struct {
	key        string
	value, max int
}

func refuseSizes(sizes []size) (refused []error) {
	for _, s := range sizes {
		if s.value < 1 || s.value > s.max {
			refused = append(refused, fmt.Errorf("%s is %d; want 1 to %d", s.key, s.value, s.max))
		}
	}
	return refused
}

// refuseActivation returns an error of an activation other than the exact GELU.
func refuseActivation(key, value string) []error {
	if value == "gelu" {
		return nil
	}
	return []error{fmt.Errorf("%s %q is not supported; \"gelu\" is", key, value)}
}

// refuseEpsilon returns an error of a norms' epsilon that divides by zero.
func refuseEpsilon(key string, value float64) []error {
	if value > 0 {
		return nil
	}
	return []error{fmt.Errorf("%s is %v; want a number above 0", key, value)}
}

type number struct {
	key   string
	value float64
}

func refuseNumbers(widthKey string, width int, headsKey string, heads int, dropouts []number) (refused []error) {
	if heads > 0 && width%heads != 0 {
		refused = append(refused, fmt.Errorf("%s %d is not a multiple of %s %d", widthKey, width, headsKey, heads))
	}
	for _, d := range dropouts {
		if d.value < 0 || d.value >= 1 {
			refused = append(refused, fmt.Errorf("%s is %v; want a rate in [0, 1)", d.key, d.value))
		}
	}
	return refused
}

// unlike says why networks of a model_type cannot be read in the layout that is nearest to theirs.
type unlike struct{ nearest, why string }

// unsupported are well-known values of model_type that have no layout.
var unsupported = map[string]unlike{
	"albert":               {"bert", "its layers share one set of weights"},
	"bart":                 {"roberta", "it has a decoder"},
	"big_bird":             {"bert", "its attention is sparse by blocks"},
	"canine":               {"bert", "it reads characters, which convolutions make shorter"},
	"convbert":             {"electra", "its layers have convolutions beside attention"},
	"deberta":              {"roberta", "its attention is disentangled: products of content and relative position"},
	"deberta-v2":           {"roberta", "its attention is disentangled: products of content and relative position"},
	"ernie":                {"bert", "it has embeddings of tasks"},
	"esm":                  {"roberta", "it has rotary positions, and norms before its layers"},
	"eurobert":             {"modernbert", "it has RMS norms and SwiGLU"},
	"fnet":                 {"bert", "it has Fourier transforms in place of attention"},
	"funnel":               {"bert", "its layers make a text shorter"},
	"gemma2":               {"modernbert", "it is a decoder: a token does not read those after it"},
	"gemma3_text":          {"modernbert", "it has RMS norms, norms of queries and keys, and heads that share keys"},
	"gpt2":                 {"roberta", "it is a decoder: a token does not read those after it"},
	"ibert":                {"roberta", "its layers compute with integers"},
	"layoutlm":             {"bert", "it has embeddings of places on a page"},
	"llama":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"longformer":           {"roberta", "its windows have global tokens with weights of their own"},
	"luke":                 {"roberta", "it has embeddings of entities, and attention of their own to them"},
	"megatron-bert":        {"bert", "it has norms before its layers"},
	"mistral":              {"modernbert", "it is a decoder: a token does not read those after it"},
	"mobilebert":           {"bert", "its layers have bottlenecks"},
	"modernbert-decoder":   {"modernbert", "it is a decoder: a token does not read those after it"},
	"mt5":                  {"mpnet", "it has a decoder, RMS norms, and a feed-forward layer with another gate"},
	"neobert":              {"modernbert", "it has RMS norms and SwiGLU"},
	"new":                  {"modernbert", "it is code of its own beside the model: rotary positions, and norms after the sums"},
	"nomic_bert":           {"modernbert", "it has norms after the sums, and SwiGLU"},
	"nystromformer":        {"bert", "its attention is an approximation"},
	"qwen2":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"qwen3":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"rembert":              {"bert", "its embeddings have a width of their own and a bias of their projection"},
	"roberta-prelayernorm": {"roberta", "it has norms before its layers"},
	"roformer":             {"bert", "it has rotary positions"},
	"squeezebert":          {"bert", "its linear layers are convolutions in groups"},
	"t5":                   {"mpnet", "it has a decoder, RMS norms, and no embeddings of positions"},
	"xlm":                  {"bert", "it has embeddings of languages, and norms in other places"},
	"xlm-roberta-xl":       {"xlm-roberta", "it has norms before its layers"},
	"xlnet":                {"bert", "it has relative positions of its own, and no embeddings of positions"},
	"xmod":                 {"xlm-roberta", "it has adapters for each language"},
}

// errUnsupported returns the error of a model_type without a layout.
func errUnsupported(path, modelType string) error {
	const onnx = "Exported to ONNX, another encoder can be used frozen, by encoder: {type: hugot}"
	hint := "."
	if other, ok := unsupported[modelType]; ok {
		hint = fmt.Sprintf("; the nearest layout is %s, but %s.", other.nearest, other.why)
	} else if name, ok := suggest.Nearest(modelType, ModelTypes()); ok {
		hint = fmt.Sprintf("; did you mean %q?", name)
	}
	return fmt.Errorf("%s: model_type %q is not supported%s Supported: %s. %s", path, modelType, hint, layoutNames(),
		onnx)
}
