package transformer

import (
	"errors"

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
	refused = append(refused, refuseActivation("activation", f.Activation)...)
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

func distilbertKeys(c config) any {
	return distilbertFile{
		Vocabulary: c.Vocabulary, Width: c.Width, Layers: c.Layers, Heads: c.Heads, FeedForward: c.FeedForward,
		MaxPositions: c.MaxPositions, Activation: c.Activation, Dropout: c.Dropout,
		AttentionDropout: c.AttentionDropout,
	}
}
