package transformer

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
		onlyKey("hidden_act", &c.Activation, "gelu"),
		epsilonKey("layer_norm_eps", &c.Epsilon, 1e-12),
		onlyKey("position_embedding_type", new(string), "absolute"),
		neverKey("is_decoder", "decoders are not supported; the model must be an encoder"),
	}}
}
