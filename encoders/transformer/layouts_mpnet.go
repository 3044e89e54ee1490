package transformer

import (
	"encoding/json"
	"fmt"
)

// mpnetLayout is MPNet's (Song et al. 2020): BERT's with RoBERTa's positions, biases of attention by distance, and no
// token types.
var mpnetLayout = layout{
	name: "mpnet", class: "MPNetModel", prefix: "mpnet.", pooler: true,
	layers: layersHere,
	parts: map[string]inFile{
		"embeddings.word_embeddings":     {name: "embeddings.word_embeddings"},
		"embeddings.position_embeddings": {name: "embeddings.position_embeddings"},
		"embeddings.LayerNorm":           {name: "embeddings.LayerNorm"},
		relativePart:                     {name: relativePart},
		"attention.self.query":           {name: "attention.attn.q"},
		"attention.self.key":             {name: "attention.attn.k"},
		"attention.self.value":           {name: "attention.attn.v"},
		"attention.output.dense":         {name: "attention.attn.o"},
		"attention.output.LayerNorm":     {name: "attention.LayerNorm"},
		"intermediate.dense":             {name: "intermediate.dense"},
		"output.dense":                   {name: "output.dense"},
		"output.LayerNorm":               {name: "output.LayerNorm"},
	},
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
