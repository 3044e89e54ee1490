package transformer

// distilbertLayout is DistilBERT's (Sanh et al. 2019): BERT's without token types, and without dropout on attention's
// output.
var distilbertLayout = layout{
	name: "distilbert", class: "DistilBertModel", prefix: "distilbert.",
	layers: "transformer.layer.",
	parts: map[string]inFile{
		"embeddings.word_embeddings":     {name: "embeddings.word_embeddings"},
		"embeddings.position_embeddings": {name: "embeddings.position_embeddings"},
		"embeddings.LayerNorm":           {name: "embeddings.LayerNorm"},
		"attention.self.query":           {name: "attention.q_lin"},
		"attention.self.key":             {name: "attention.k_lin"},
		"attention.self.value":           {name: "attention.v_lin"},
		"attention.output.dense":         {name: "attention.out_lin"},
		"attention.output.LayerNorm":     {name: "sa_layer_norm"},
		"intermediate.dense":             {name: "ffn.lin1"},
		"output.dense":                   {name: "ffn.lin2"},
		"output.LayerNorm":               {name: "output_layer_norm"},
	},
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
			onlyKey("activation", &c.Activation, "gelu"),
			neverKey("sinusoidal_pos_embds", "fixed positions are not supported; learned ones are"),
		}}
	},
}
