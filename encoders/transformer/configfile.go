package transformer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/regular"
)

// The largest values in a config.json. The first two are in the tags of Options, too.
const (
	maxLayers = 1 << 10
	maxSize   = 1 << 24 // of every other number
	maxTypes  = 128
)

// bertFile and distilbertFile are the keys of a config.json that the network depends on. A missing key has the default
// of transformers' BertConfig or DistilBertConfig.
type bertFile struct {
	Vocabulary       int     `json:"vocab_size"`
	Width            int     `json:"hidden_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	FeedForward      int     `json:"intermediate_size"`
	MaxPositions     int     `json:"max_position_embeddings"`
	Types            int     `json:"type_vocab_size"`
	Activation       string  `json:"hidden_act"`
	Dropout          float64 `json:"hidden_dropout_prob"`
	AttentionDropout float64 `json:"attention_probs_dropout_prob"`
	Epsilon          float64 `json:"layer_norm_eps"`
	Positions        string  `json:"position_embedding_type"`
	IsDecoder        bool    `json:"is_decoder"`
}

type distilbertFile struct {
	Vocabulary       int     `json:"vocab_size"`
	Width            int     `json:"dim"`
	Layers           int     `json:"n_layers"`
	Heads            int     `json:"n_heads"`
	FeedForward      int     `json:"hidden_dim"`
	MaxPositions     int     `json:"max_position_embeddings"`
	Activation       string  `json:"activation"`
	Dropout          float64 `json:"dropout"`
	AttentionDropout float64 `json:"attention_dropout"`
	Sinusoidal       bool    `json:"sinusoidal_pos_embds"`
}

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
		return config{}, nil, fmt.Errorf("%s: no model_type; \"bert\" and \"distilbert\" are supported", path)
	}

	var c config
	var refused []error
	switch *kind.Type {
	case "bert":
		c, refused, err = readBERT(path, data)
	case "distilbert":
		c, refused, err = readDistilBERT(path, data)
	default:
		err = fmt.Errorf("%s: model_type %q is not supported; \"bert\" and \"distilbert\" are. Exported to "+
			"ONNX, another encoder can be used frozen, by encoder: {type: hugot}", path, *kind.Type)
	}
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

func readBERT(path string, data []byte) (config, []error, error) {
	f := bertFile{
		Vocabulary: 30522, Width: 768, Layers: 12, Heads: 12, FeedForward: 3072, MaxPositions: 512, Types: 2,
		Activation: "gelu", Dropout: 0.1, AttentionDropout: 0.1, Epsilon: 1e-12, Positions: "absolute",
	}
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	refused := refuseSizes([]size{
		{"vocab_size", f.Vocabulary, maxSize}, {"hidden_size", f.Width, maxSize},
		{"num_hidden_layers", f.Layers, maxLayers},
		{"num_attention_heads", f.Heads, maxSize}, {"intermediate_size", f.FeedForward, maxSize},
		{"max_position_embeddings", f.MaxPositions, maxSize}, {"type_vocab_size", f.Types, maxTypes},
	})
	refused = append(refused, refuseNumbers("hidden_size", f.Width, "num_attention_heads", f.Heads, []number{
		{"hidden_dropout_prob", f.Dropout}, {"attention_probs_dropout_prob", f.AttentionDropout}})...)
	if f.Activation != "gelu" {
		refused = append(refused, fmt.Errorf("hidden_act %q is not supported; \"gelu\" is", f.Activation))
	}
	if f.Epsilon <= 0 {
		refused = append(refused, fmt.Errorf("layer_norm_eps is %v; want a number above 0", f.Epsilon))
	}
	if f.Positions != "absolute" {
		refused = append(refused, fmt.Errorf("position_embedding_type %q is not supported; \"absolute\" is",
			f.Positions))
	}
	if f.IsDecoder {
		refused = append(refused, errors.New("is_decoder: decoders are not supported; the model must be an encoder"))
	}
	return config{
		Layout: "bert", Vocabulary: f.Vocabulary, Layers: f.Layers, Width: f.Width, Heads: f.Heads,
		FeedForward:  f.FeedForward,
		MaxPositions: f.MaxPositions, Types: f.Types, Epsilon: f.Epsilon, Dropout: f.Dropout,
		AttentionDropout: f.AttentionDropout, Activation: f.Activation,
	}, refused, nil
}

func readDistilBERT(path string, data []byte) (config, []error, error) {
	f := distilbertFile{
		Vocabulary: 30522, Width: 768, Layers: 6, Heads: 12, FeedForward: 3072, MaxPositions: 512,
		Activation: "gelu", Dropout: 0.1, AttentionDropout: 0.1,
	}
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	refused := refuseSizes([]size{
		{"vocab_size", f.Vocabulary, maxSize}, {"dim", f.Width, maxSize}, {"n_layers", f.Layers, maxLayers},
		{"n_heads", f.Heads, maxSize}, {"hidden_dim", f.FeedForward, maxSize},
		{"max_position_embeddings", f.MaxPositions, maxSize},
	})
	refused = append(refused, refuseNumbers("dim", f.Width, "n_heads", f.Heads, []number{
		{"dropout", f.Dropout}, {"attention_dropout", f.AttentionDropout}})...)
	if f.Activation != "gelu" {
		refused = append(refused, fmt.Errorf("activation %q is not supported; \"gelu\" is", f.Activation))
	}
	if f.Sinusoidal {
		refused = append(refused, errors.New("sinusoidal_pos_embds: fixed positions are not supported; "+
			"learned ones are"))
	}
	return config{
		Layout: "distilbert", Vocabulary: f.Vocabulary, Layers: f.Layers, Width: f.Width, Heads: f.Heads,
		FeedForward:  f.FeedForward,
		MaxPositions: f.MaxPositions, Epsilon: 1e-12, // a constant in DistilBERT's code, not in its files
		Dropout: f.Dropout, AttentionDropout: f.AttentionDropout, Activation: f.Activation,
	}, refused, nil
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

// configKeys returns the keys of the config.json of a network that was made from scratch.
func configKeys(c config) map[string]json.RawMessage {
	var file any
	keys := map[string]json.RawMessage{}
	switch c.Layout {
	case "bert":
		file = bertFile{
			Vocabulary: c.Vocabulary, Width: c.Width, Layers: c.Layers, Heads: c.Heads, FeedForward: c.FeedForward,
			MaxPositions: c.MaxPositions, Types: c.Types, Activation: c.Activation, Dropout: c.Dropout,
			AttentionDropout: c.AttentionDropout, Epsilon: c.Epsilon, Positions: "absolute",
		}
		keys["architectures"] = json.RawMessage(`["BertModel"]`)
	case "distilbert":
		file = distilbertFile{
			Vocabulary: c.Vocabulary, Width: c.Width, Layers: c.Layers, Heads: c.Heads, FeedForward: c.FeedForward,
			MaxPositions: c.MaxPositions, Activation: c.Activation, Dropout: c.Dropout,
			AttentionDropout: c.AttentionDropout,
		}
		keys["architectures"] = json.RawMessage(`["DistilBertModel"]`)
	default:
		panic(fmt.Sprintf("transformer: layout %q", c.Layout))
	}
	data, _ := json.Marshal(file)   // plain numbers and strings
	_ = json.Unmarshal(data, &keys) // valid JSON, written by Marshal
	keys["model_type"], _ = json.Marshal(c.Layout)
	return keys
}
