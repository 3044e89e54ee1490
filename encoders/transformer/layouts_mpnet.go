package transformer

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// mpnetLayout is MPNet's (Song et al. 2020): BERT's with RoBERTa's positions, biases of attention by distance, and no
// token types.
var mpnetLayout = layout{
	name: "mpnet", class: "MPNetModel", prefix: "mpnet.", pooler: true,
	layers: layersHere,
	names: map[string]string{
		"attention.self.query":       "attention.attn.q",
		"attention.self.key":         "attention.attn.k",
		"attention.self.value":       "attention.attn.v",
		"attention.output.dense":     "attention.attn.o",
		"attention.output.LayerNorm": "attention.LayerNorm",
	},
	afterPadding:  true,
	outputDropout: hiddenDropout,
	read:          readMPNet,
	keys:          func(c config) any { return mpnetFile{newBERTFileOf(c), c.Buckets} },
}

// mpnetPadding is the id of the padding token from which positions are counted: a constant in MPNet's code.
const mpnetPadding = 1

// mpnetFile has the keys of a config.json that the network depends on. A missing key has the default of transformers'
// MPNetConfig.
type mpnetFile struct {
	bertFile
	Buckets int `json:"relative_attention_num_buckets"`
}

func readMPNet(path string, data []byte) (config, []error, error) {
	f := mpnetFile{newBERTFile(), relativeBuckets}
	f.Vocabulary = 30527
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	if f.Types == 0 {
		f.Types = 1 // the key may be there, and has no effect
	}
	c, refused := f.config("mpnet")
	if f.Buckets < relativeBuckets || f.Buckets > maxSize {
		refused = append(refused, fmt.Errorf("relative_attention_num_buckets is %d; want %d to %d", f.Buckets,
			relativeBuckets, maxSize))
	}
	if least := mpnetPadding + 1 + minTokens; f.MaxPositions < least {
		refused = append(refused, fmt.Errorf("max_position_embeddings is %d; want at least %d", f.MaxPositions, least))
	}
	c.Types, c.Padding, c.Buckets = 0, mpnetPadding, f.Buckets
	return c, refused, nil
}
