package transformer

// electraLayout is ELECTRA's (Clark et al. 2020): BERT's, with embeddings of a width of their own that are projected to
// that of the states.
var electraLayout = layout{
	name: "electra", class: "ElectraModel", prefix: "electra.",
	layers:        layersHere,
	parts:         with(bertParts, "embeddings_project", inFile{name: "embeddings_project"}),
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
