package transformer

import (
	"encoding/json"
	"fmt"
)

// BERT's layout, and those of its relatives, which differ from it in names, positions or embeddings.

// bertLayout is BERT's (Devlin et al. 2019).
var bertLayout = layout{
	name: "bert", class: "BertModel", prefix: "bert.", pooler: true,
	layers:        layersHere,
	parts:         bertParts,
	outputDropout: hiddenDropout,
	keys: func(c *config) configKeys {
		return bertKeys(c).with(sizeKey("type_vocab_size", &c.Types, 2, maxTypes))
	},
}

// bertParts are those of BERT, whose names are ours.
var bertParts = map[string]inFile{
	"embeddings.word_embeddings":       {name: "embeddings.word_embeddings"},
	"embeddings.position_embeddings":   {name: "embeddings.position_embeddings"},
	"embeddings.token_type_embeddings": {name: "embeddings.token_type_embeddings"},
	"embeddings.LayerNorm":             {name: "embeddings.LayerNorm"},
	"attention.self.query":             {name: "attention.self.query"},
	"attention.self.key":               {name: "attention.self.key"},
	"attention.self.value":             {name: "attention.self.value"},
	"attention.output.dense":           {name: "attention.output.dense"},
	"attention.output.LayerNorm":       {name: "attention.output.LayerNorm"},
	"intermediate.dense":               {name: "intermediate.dense"},
	"output.dense":                     {name: "output.dense"},
	"output.LayerNorm":                 {name: "output.LayerNorm"},
}

// bertKeys are those of transformers' BertConfig, but type_vocab_size, which those of several other classes are, too.
func bertKeys(c *config) configKeys {
	return configKeys{keys: []key{
		sizeKey("vocab_size", &c.Vocabulary, 30522, maxSize),
		sizeKey("hidden_size", &c.Width, 768, maxSize),
		sizeKey("num_hidden_layers", &c.Layers, 12, maxLayers),
		sizeKey("num_attention_heads", &c.Heads, 12, maxSize),
		sizeKey("intermediate_size", &c.FeedForward, 3072, maxSize),
		sizeKey("max_position_embeddings", &c.MaxPositions, 512, maxSize),
		rateKey("hidden_dropout_prob", &c.Dropout, 0.1),
		rateKey("attention_probs_dropout_prob", &c.AttentionDropout, 0.1),
		onlyKey("hidden_act", "gelu"), // with erf, not its approximations
		epsilonKey("layer_norm_eps", &c.Epsilon, 1e-12),
		onlyKey("position_embedding_type", "absolute"),
		neverKey("is_decoder", "decoders are not supported; the model must be an encoder"),
	}}
}

// distilbertLayout is DistilBERT's (Sanh et al. 2019): BERT's without token types, and without dropout on attention's
// output.
var distilbertLayout = layout{
	name: "distilbert", class: "DistilBertModel", prefix: "distilbert.",
	layers: "transformer.layer.",
	parts: with(bertParts, map[string]string{
		"embeddings.token_type_embeddings": "",
		"attention.self.query":             "attention.q_lin",
		"attention.self.key":               "attention.k_lin",
		"attention.self.value":             "attention.v_lin",
		"attention.output.dense":           "attention.out_lin",
		"attention.output.LayerNorm":       "sa_layer_norm",
		"intermediate.dense":               "ffn.lin1",
		"output.dense":                     "ffn.lin2",
		"output.LayerNorm":                 "output_layer_norm",
	}),
	// Those of transformers' DistilBertConfig, whose attribute_map has three under the names of other layouts, too.
	keys: func(c *config) configKeys {
		c.Epsilon = 1e-12 // a constant in DistilBERT's code, not in its files
		return configKeys{keys: []key{
			sizeKey("vocab_size", &c.Vocabulary, 30522, maxSize),
			sizeKey("dim", &c.Width, 768, maxSize).or("hidden_size"),
			sizeKey("n_layers", &c.Layers, 6, maxLayers).or("num_hidden_layers"),
			sizeKey("n_heads", &c.Heads, 12, maxSize).or("num_attention_heads"),
			sizeKey("hidden_dim", &c.FeedForward, 3072, maxSize),
			sizeKey("max_position_embeddings", &c.MaxPositions, 512, maxSize),
			rateKey("dropout", &c.Dropout, 0.1),
			rateKey("attention_dropout", &c.AttentionDropout, 0.1),
			onlyKey("activation", "gelu"),
			neverKey("sinusoidal_pos_embds", "fixed positions are not supported; learned ones are"),
		}}
	},
}

// electraLayout is ELECTRA's (Clark et al. 2020): BERT's, with embeddings of a width of their own that are projected to
// that of the states.
var electraLayout = layout{
	name: "electra", class: "ElectraModel", prefix: "electra.",
	layers:        layersHere,
	parts:         with(bertParts, map[string]string{"embeddings_project": "embeddings_project"}),
	outputDropout: hiddenDropout,
	// Those of transformers' ElectraConfig.
	keys: func(c *config) configKeys {
		c.Embedding = c.embedding()
		return bertLayout.keys(c).with(
			sizeKey("hidden_size", &c.Width, 256, maxSize),
			sizeKey("num_attention_heads", &c.Heads, 4, maxSize),
			sizeKey("intermediate_size", &c.FeedForward, 1024, maxSize),
			sizeKey("embedding_size", &c.Embedding, 128, maxSize),
		)
	},
}

// mpnetLayout is MPNet's (Song et al. 2020): BERT's with RoBERTa's positions, biases of attention by distance, and no
// token types.
var mpnetLayout = layout{
	name: "mpnet", class: "MPNetModel", prefix: "mpnet.", pooler: true,
	layers: layersHere,
	parts: with(bertParts, map[string]string{
		"embeddings.token_type_embeddings": "",
		relativePart:                       relativePart,
		"attention.self.query":             "attention.attn.q",
		"attention.self.key":               "attention.attn.k",
		"attention.self.value":             "attention.attn.v",
		"attention.output.dense":           "attention.attn.o",
		"attention.output.LayerNorm":       "attention.LayerNorm",
	}),
	afterPadding:  true,
	outputDropout: hiddenDropout,
	keys:          mpnetKeys,
}

// mpnetKeys are those of transformers' MPNetConfig. It has a type_vocab_size, too, without effect.
func mpnetKeys(c *config) configKeys {
	c.Padding = 1 // from which positions are counted: a constant in MPNet's code
	buckets := sizeKey("relative_attention_num_buckets", &c.Buckets, relativeBuckets, maxSize)
	buckets.check = inRange(&c.Buckets, relativeBuckets, maxSize)
	k := bertKeys(c).with(sizeKey("vocab_size", &c.Vocabulary, 30527, maxSize), buckets)
	k.finish = func(map[string]json.RawMessage) []error {
		if least := c.Padding + 1 + minTokens; c.MaxPositions < least {
			return []error{fmt.Errorf("max_position_embeddings is %d; want at least %d", c.MaxPositions, least)}
		}
		return nil
	}
	return k
}

// RoBERTa's layout (Liu et al. 2019), and those of the models that were trained with its code: XLM-R (Conneau et al.
// 2020) and CamemBERT (Martin et al. 2020). They are BERT's, but for positions, and have one token type.
var (
	robertaLayout    = newRoBERTaLayout("roberta", "RobertaModel", 50265)
	xlmRobertaLayout = newRoBERTaLayout("xlm-roberta", "XLMRobertaModel", 30522)
	camembertLayout  = newRoBERTaLayout("camembert", "CamembertModel", 30522)
)

func newRoBERTaLayout(name, class string, vocabulary int) layout {
	return layout{
		name: name, class: class, prefix: "roberta.", pooler: true,
		layers:        layersHere,
		parts:         bertParts,
		afterPadding:  true,
		outputDropout: hiddenDropout,
		// Those of transformers' RobertaConfig.
		keys: func(c *config) configKeys {
			k := bertLayout.keys(c).with(
				sizeKey("vocab_size", &c.Vocabulary, vocabulary, maxSize),
				newKey("pad_token_id", &c.Padding, 1),
			)
			k.finish = func(map[string]json.RawMessage) []error { return refusePositions(*c) }
			return k
		},
	}
}

// refusePositions returns an error of a padding token that leaves no positions for a text.
func refusePositions(c config) []error {
	switch last := c.MaxPositions - 1 - minTokens; {
	case last < 0 && c.MaxPositions > 0:
		return []error{fmt.Errorf("max_position_embeddings is %d; want %d or more, %d of them after that of "+
			"pad_token_id", c.MaxPositions, 1+minTokens, minTokens)}
	case last >= 0 && (c.Padding < 0 || c.Padding > last):
		return []error{fmt.Errorf("pad_token_id is %d, after which positions begin, but max_position_embeddings is "+
			"%d; want a pad_token_id from 0 to %d, which leaves %d positions", c.Padding, c.MaxPositions, last,
			minTokens)}
	}
	return nil
}
