package transformer

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// bertLayout is BERT's (Devlin et al. 2019).
var bertLayout = layout{
	name: "bert", class: "BertModel", prefix: "bert.", pooler: true,
	layers:        layersHere,
	outputDropout: hiddenDropout,
	read:          readBERT,
	keys:          bertKeys,
}

// bertFile has the keys of a config.json that the network depends on. A missing key has the default of transformers'
// BertConfig.
type bertFile struct {
	Vocabulary       int     `json:"vocab_size"`
	Width            int     `json:"hidden_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	FeedForward      int     `json:"intermediate_size"`
	MaxPositions     int     `json:"max_position_embeddings"`
	Types            int     `json:"type_vocab_size,omitempty"`
	Activation       string  `json:"hidden_act"`
	Dropout          float64 `json:"hidden_dropout_prob"`
	AttentionDropout float64 `json:"attention_probs_dropout_prob"`
	Epsilon          float64 `json:"layer_norm_eps"`
	Positions        string  `json:"position_embedding_type"`
	IsDecoder        bool    `json:"is_decoder"`
}

// newBERTFile returns the defaults of transformers' BertConfig, which those of several other classes are, too.
func newBERTFile() bertFile {
	return bertFile{
		Vocabulary: 30522, Width: 768, Layers: 12, Heads: 12, FeedForward: 3072, MaxPositions: 512, Types: 2,
		Activation: "gelu", Dropout: 0.1, AttentionDropout: 0.1, Epsilon: 1e-12, Positions: "absolute",
	}
}

func readBERT(path string, data []byte) (config, []error, error) {
	f := newBERTFile()
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	c, refused := f.config("bert")
	return c, refused, nil
}

// config returns the configuration of a network of a layout, and the values that no network can have.
func (f bertFile) config(layout string) (config, []error) {
	refused := refuseSizes([]size{
		{"vocab_size", f.Vocabulary, maxSize}, {"hidden_size", f.Width, maxSize},
		{"num_hidden_layers", f.Layers, maxLayers},
		{"num_attention_heads", f.Heads, maxSize}, {"intermediate_size", f.FeedForward, maxSize},
		{"max_position_embeddings", f.MaxPositions, maxSize}, {"type_vocab_size", f.Types, maxTypes},
	})
	refused = append(refused, refuseNumbers("hidden_size", f.Width, "num_attention_heads", f.Heads, []number{
		{"hidden_dropout_prob", f.Dropout}, {"attention_probs_dropout_prob", f.AttentionDropout}})...)
	refused = append(refused, refuseActivation("hidden_act", f.Activation)...)
	refused = append(refused, refuseEpsilon("layer_norm_eps", f.Epsilon)...)
	if f.Positions != "absolute" {
		refused = append(refused, fmt.Errorf("position_embedding_type %q is not supported; \"absolute\" is",
			f.Positions))
	}
	if f.IsDecoder {
		refused = append(refused, errors.New("is_decoder: decoders are not supported; the model must be an encoder"))
	}
	return config{
		Layout: layout, Vocabulary: f.Vocabulary, Layers: f.Layers, Width: f.Width, Heads: f.Heads,
		FeedForward:  f.FeedForward,
		MaxPositions: f.MaxPositions, Types: f.Types, Epsilon: f.Epsilon, Dropout: f.Dropout,
		AttentionDropout: f.AttentionDropout, Activation: f.Activation,
	}, refused
}

func bertKeys(c config) any { return newBERTFileOf(c) }

// newBERTFileOf returns the keys that config reads as c.
func newBERTFileOf(c config) bertFile {
	return bertFile{
		Vocabulary: c.Vocabulary, Width: c.Width, Layers: c.Layers, Heads: c.Heads, FeedForward: c.FeedForward,
		MaxPositions: c.MaxPositions, Types: c.Types, Activation: c.Activation, Dropout: c.Dropout,
		AttentionDropout: c.AttentionDropout, Epsilon: c.Epsilon, Positions: "absolute",
	}
}
