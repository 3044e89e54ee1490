package transformer

import (
	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// electraLayout is ELECTRA's (Clark et al. 2020): BERT's, with embeddings of a width of their own that are projected to
// that of the states.
var electraLayout = layout{
	name: "electra", class: "ElectraModel", prefix: "electra.",
	layers:        layersHere,
	outputDropout: hiddenDropout,
	read:          readELECTRA,
	keys:          func(c config) any { return electraFile{newBERTFileOf(c), c.embedding()} },
}

// electraFile has the keys of a config.json that the network depends on. A missing key has the default of transformers'
// ElectraConfig.
type electraFile struct {
	bertFile
	Embedding int `json:"embedding_size"`
}

func readELECTRA(path string, data []byte) (config, []error, error) {
	f := electraFile{newBERTFile(), 128}
	f.Width, f.Heads, f.FeedForward = 256, 4, 1024
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	c, refused := f.config("electra")
	refused = append(refused, refuseSizes([]size{{"embedding_size", f.Embedding, maxSize}})...)
	c.Embedding = f.Embedding
	return c, refused, nil
}
