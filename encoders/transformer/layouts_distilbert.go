package transformer

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// distilbertLayout is DistilBERT's (Sanh et al. 2019): BERT's without token types, and without dropout on attention's
// output.
var distilbertLayout = layout{
	name: "distilbert", class: "DistilBertModel", prefix: "distilbert.",
	layers: "transformer.layer.",
	names: map[string]string{
		"attention.self.query":       "attention.q_lin",
		"attention.self.key":         "attention.k_lin",
		"attention.self.value":       "attention.v_lin",
		"attention.output.dense":     "attention.out_lin",
		"attention.output.LayerNorm": "sa_layer_norm",
		"intermediate.dense":         "ffn.lin1",
		"output.dense":               "ffn.lin2",
		"output.LayerNorm":           "output_layer_norm",
	},
	read: readDistilBERT,
	keys: distilbertKeys,
}

// distilbertFile has the keys of a config.json that the network depends on. A missing key has the default of
// transformers' DistilBertConfig.
type distilbertFile struct {
	Vocabulary       int     `json:"vocab_size"`
	Width            *int    `json:"dim"`
	Layers           *int    `json:"n_layers"`
	Heads            *int    `json:"n_heads"`
	FeedForward      int     `json:"hidden_dim"`
	MaxPositions     int     `json:"max_position_embeddings"`
	Activation       string  `json:"activation"`
	Dropout          float64 `json:"dropout"`
	AttentionDropout float64 `json:"attention_dropout"`
	Sinusoidal       bool    `json:"sinusoidal_pos_embds"`

	// The same three by the names that other layouts have for them: DistilBertConfig's attribute_map.
	WidthToo  *int `json:"hidden_size,omitempty"`
	LayersToo *int `json:"num_hidden_layers,omitempty"`
	HeadsToo  *int `json:"num_attention_heads,omitempty"`
}

// sizes returns the sizes that have two names, under the names that config.json has. Both with different values are an
// error.
func (f distilbertFile) sizes() (width, layers, heads size, refused []error) {
	choose := func(s size, value *int, other string, otherValue *int) size {
		switch {
		case value != nil && otherValue != nil && *value != *otherValue:
			refused = append(refused, fmt.Errorf("%s is %d, but %s, which means the same, is %d; want one of them",
				s.key, *value, other, *otherValue))
		case value != nil:
			s.value = *value
		case otherValue != nil:
			s.key, s.value = other, *otherValue
		}
		return s
	}
	width = choose(size{"dim", 768, maxSize}, f.Width, "hidden_size", f.WidthToo)
	layers = choose(size{"n_layers", 6, maxLayers}, f.Layers, "num_hidden_layers", f.LayersToo)
	heads = choose(size{"n_heads", 12, maxSize}, f.Heads, "num_attention_heads", f.HeadsToo)
	return width, layers, heads, refused
}

func readDistilBERT(path string, data []byte) (config, []error, error) {
	f := distilbertFile{
		Vocabulary: 30522, FeedForward: 3072, MaxPositions: 512,
		Activation: "gelu", Dropout: 0.1, AttentionDropout: 0.1,
	}
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	width, layers, heads, refused := f.sizes()
	refused = append(refused, refuseSizes([]size{
		{"vocab_size", f.Vocabulary, maxSize}, width, layers, heads, {"hidden_dim", f.FeedForward, maxSize},
		{"max_position_embeddings", f.MaxPositions, maxSize},
	})...)
	refused = append(refused, refuseNumbers(width.key, width.value, heads.key, heads.value, []number{
		{"dropout", f.Dropout}, {"attention_dropout", f.AttentionDropout}})...)
	refused = append(refused, refuseActivation("activation", f.Activation)...)
	if f.Sinusoidal {
		refused = append(refused, errors.New("sinusoidal_pos_embds: fixed positions are not supported; "+
			"learned ones are"))
	}
	return config{
		Layout: "distilbert", Vocabulary: f.Vocabulary,
		Layers: layers.value, Width: width.value, Heads: heads.value, FeedForward: f.FeedForward,
		MaxPositions: f.MaxPositions, Epsilon: 1e-12, // a constant in DistilBERT's code, not in its files
		Dropout: f.Dropout, AttentionDropout: f.AttentionDropout, Activation: f.Activation,
	}, refused, nil
}

func distilbertKeys(c config) any {
	return distilbertFile{
		Vocabulary: c.Vocabulary, Width: &c.Width, Layers: &c.Layers, Heads: &c.Heads, FeedForward: c.FeedForward,
		MaxPositions: c.MaxPositions, Activation: c.Activation, Dropout: c.Dropout,
		AttentionDropout: c.AttentionDropout,
	}
}
