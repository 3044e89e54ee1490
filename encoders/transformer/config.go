package transformer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

type config struct {
	layout           *layout
	Vocabulary       int // token ids
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
	InitializerRange float64 // standard deviation of initial weights; 0: BERT's, 0.02

	Local                 map[int]bool // layers, from 0 on, whose attention is in windows
	Window                int          // tokens at each side of a token that these layers read
	GlobalBase, LocalBase float64      // bases of rotary positions, of the other layers and of these
	NoBias                biases       // parts without biases

	Chosen []int // the layers of the model's files that these are, numbered from 0; nil: all
	All    int   // number of layers that the files have; 0: Layers
}

// biases are parts of a network, which have biases or have none.
type biases struct{ Attention, FeedForward, Norms bool }

func (c *config) setDropout(rate float64) {
	c.Dropout, c.AttentionDropout, c.EmbeddingDropout = rate, rate, rate
}

// check returns an error if no network can be made of c, whose single values have been checked: those of a config.json
// by its keys, the others by the tags of Options.
func (c config) check() error {
	if c.Vocabulary < 1 || c.Vocabulary > maxSize {
		return fmt.Errorf("vocabulary is %d; want 1 to %d", c.Vocabulary, maxSize)
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("width %d is not a multiple of %d heads", c.Width, c.Heads)
	}
	if c.layout.rotary() && c.Width/c.Heads%2 != 0 {
		return fmt.Errorf("width %d of %d heads is odd for each head; rotary positions want an even number", c.Width,
			c.Heads)
	}
	for _, rate := range []float64{c.Dropout, c.AttentionDropout, c.EmbeddingDropout} {
		if !(rate >= 0 && rate < 1) {
			return fmt.Errorf("dropout is %v; want a rate in [0, 1)", rate)
		}
	}
	n := 0 // without biases and norms
	for _, p := range parametersOf(c) {
		if len(p.shape) > 1 {
			n += p.shape[0] * p.shape[1]
		}
	}
	if n > encoders.MaxParameters {
		return fmt.Errorf("a network of this size has %d parameters; want at most %d", n, encoders.MaxParameters)
	}
	return nil
}

func (c config) embedding() int { return cmp.Or(c.Embedding, c.Width) }

func (c config) maxTokens() int { return c.MaxPositions - c.firstPosition() }

func (c config) firstPosition() int {
	if c.layout.afterPadding {
		return c.Padding + 1
	}
	return 0
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
	data, err := files.ReadFile(path, files.MaxConfig)
	if err != nil {
		return config{}, nil, err
	}
	var keys map[string]json.RawMessage
	var kind struct {
		Type *string `json:"model_type"`
	}
	if err := files.UnmarshalJSON(path, data, &keys); err != nil {
		return config{}, nil, err
	}
	if err := files.UnmarshalJSON(path, data, &kind); err != nil {
		return config{}, nil, err
	}
	if kind.Type == nil {
		return config{}, nil, fmt.Errorf("%s: no model_type; supported: %s", path, layoutNames())
	}
	l := findLayout(*kind.Type)
	if l == nil {
		return config{}, nil, errUnsupported(path, *kind.Type)
	}

	c, refused, err := l.read(path, data, keys)
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

// configKeys are the keys of a config.json that the networks of a layout depend on.
type configKeys struct {
	keys []key
	// finish sets in the config what no key has alone, and returns errors of values that no network can have, by all
	// keys that are given; nil: there is nothing to do.
	finish func(given map[string]json.RawMessage) []error
}

// key is a key of config.json, with the place of its value.
type key struct {
	name  string
	alias string // another name of it that transformers reads; "" for none
	value any    // pointer to the value
	reset func() // sets the value to the default of transformers' class
	check func(name string) error
	old   bool // it is read, and not written
	each  bool // it has something of each layer

	shapes bool // shapes depend on it, an integer
}

func newKey[T any](name string, value *T, missing T) key {
	return key{name: name, value: value, reset: func() { *value = missing }, check: func(string) error { return nil }}
}

func oldKey[T any](name string, value *T, missing T) key {
	k := newKey(name, value, missing)
	k.old = true
	return k
}

func (k key) ofEachLayer() key {
	k.each = true
	return k
}

// sizeKey returns the key of an integer from 1 to most that shapes depend on.
func sizeKey(name string, value *int, missing, most int) key {
	k := newKey(name, value, missing)
	k.shapes, k.check = true, inRange(value, 1, most)
	return k
}

func (k key) or(alias string) key {
	k.alias = alias
	return k
}

func (k key) checked(check func(name string) error) key {
	k.check = check
	return k
}

func inRange(value *int, least, most int) func(string) error {
	return func(name string) error {
		if *value < least || *value > most {
			return fmt.Errorf("%s is %d; want %d to %d", name, *value, least, most)
		}
		return nil
	}
}

func rateKey(name string, value *float64, missing float64) key {
	return newKey(name, value, missing).checked(func(name string) error {
		if *value < 0 || *value >= 1 {
			return fmt.Errorf("%s is %v; want a rate in [0, 1)", name, *value)
		}
		return nil
	})
}

// epsilonKey returns the key of the norms' epsilon, by which a division by zero is avoided.
func epsilonKey(name string, value *float64, missing float64) key {
	return newKey(name, value, missing).checked(func(name string) error {
		if !(*value > 0 && *value < 1) {
			return fmt.Errorf("%s is %v; want a number above 0 and below 1, such as 1e-12", name, *value)
		}
		return nil
	})
}

// onlyKey returns a key of which one value is supported.
func onlyKey(name, only string) key {
	value := only
	return newKey(name, &value, only).checked(func(name string) error {
		if value != only {
			return fmt.Errorf("%s %q is not supported; %q is", name, value, only)
		}
		return nil
	})
}

// neverKey returns a key that must be false; why ends the error.
func neverKey(name, why string) key {
	value := new(bool)
	return newKey(name, value, false).checked(func(name string) error {
		if *value {
			return fmt.Errorf("%s: %s", name, why)
		}
		return nil
	})
}

// with returns the keys with others, which take the place of those of the same name.
func (k configKeys) with(keys ...key) configKeys {
	for _, other := range keys {
		if i := slices.IndexFunc(k.keys, func(k key) bool { return k.name == other.name }); i >= 0 {
			k.keys[i] = other
		} else {
			k.keys = append(k.keys, other)
		}
	}
	return k
}

// defaults returns the config of a config.json without keys.
func (l *layout) defaults() config {
	c, _, err := l.read("", []byte("{}"), nil)
	if err != nil {
		panic("transformer: " + err.Error())
	}
	return c
}

// read reads a config.json, whose content is data and whose keys are given. refused are the values that no network can
// have.
func (l *layout) read(path string, data []byte, given map[string]json.RawMessage) (c config, refused []error,
	err error) {
	c.layout = l
	k := l.keys(&c)
	names, refused, err := k.decode(path, data, given)
	if err != nil {
		return c, nil, err
	}
	for _, key := range k.keys {
		if err := key.check(names[key.value]); err != nil {
			refused = append(refused, err)
		}
	}
	if c.Heads > 0 && c.Width%c.Heads != 0 {
		refused = append(refused, fmt.Errorf("%s %d is not a multiple of %s %d", names[&c.Width], c.Width,
			names[&c.Heads], c.Heads))
	}
	if k.finish != nil {
		refused = append(refused, k.finish(given)...)
	}
	return c, refused, nil
}

// decode sets the values of keys to those in data, and of those that it lacks to the defaults. It returns the names
// under which data has them, by value, and errors of two names with different values. Errors of a value's type name the
// line: encoding/json reads all values into one struct.
func (k configKeys) decode(path string, data []byte, given map[string]json.RawMessage) (names map[any]string,
	refused []error, err error) {
	var fields []reflect.StructField
	field := func(i int, prefix, name string) {
		if name != "" {
			fields = append(fields, reflect.StructField{Name: prefix + strconv.Itoa(i),
				Type: reflect.TypeOf(k.keys[i].value).Elem(), Tag: reflect.StructTag(fmt.Sprintf("json:%q", name))})
		}
	}
	for i, key := range k.keys {
		key.reset()
		field(i, "Key", key.name)
		field(i, "Alias", key.alias)
	}
	read := reflect.New(reflect.StructOf(fields)).Elem()
	for i, key := range k.keys {
		read.FieldByName("Key" + strconv.Itoa(i)).Set(reflect.ValueOf(key.value).Elem())
	}
	if err := files.UnmarshalJSON(path, data, read.Addr().Interface()); err != nil {
		return nil, nil, err
	}

	names = map[any]string{}
	for i, key := range k.keys {
		names[key.value] = key.name
		value := read.FieldByName("Key" + strconv.Itoa(i))
		if key.alias != "" && isGiven(given, key.alias) {
			other := read.FieldByName("Alias" + strconv.Itoa(i))
			if !isGiven(given, key.name) {
				names[key.value], value = key.alias, other
			} else if !value.Equal(other) {
				refused = append(refused, fmt.Errorf("%s is %v, but %s, which means the same, is %v; want one of them",
					key.name, value, key.alias, other))
			}
		}
		reflect.ValueOf(key.value).Elem().Set(value)
	}
	return names, refused, nil
}

func isGiven(given map[string]json.RawMessage, key string) bool {
	value, ok := given[key]
	return ok && string(value) != "null"
}

// fileKeys returns the keys of the config.json of a network that was made from scratch.
func (c config) fileKeys() map[string]json.RawMessage {
	l := c.layout
	all := map[string]json.RawMessage{}
	for _, key := range l.keys(&c).keys {
		if !key.old {
			all[key.name], _ = json.Marshal(reflect.ValueOf(key.value).Elem().Interface()) // plain values
		}
	}
	all["architectures"], _ = json.Marshal([]string{l.class})
	all["model_type"], _ = json.Marshal(l.name)
	return all
}

// missingSizes returns the sizes that config.json, whose keys are given, lacks: those in c are defaults.
func (c config) missingSizes(given map[string]json.RawMessage) []key {
	return slices.DeleteFunc(c.layout.keys(&c).keys, func(k key) bool {
		return !k.shapes || isGiven(given, k.name) || isGiven(given, k.alias)
	})
}

func (k key) size() int { return *k.value.(*int) }

func (k key) missing() string { return fmt.Sprintf("no %s, whose default is %d", k.name, k.size()) }

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
