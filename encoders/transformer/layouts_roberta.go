package transformer

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// RoBERTa's layout (Liu et al. 2019), and those of the models that were trained with its code: XLM-R (Conneau et al.
// 2020) and CamemBERT (Martin et al. 2020). They are BERT's, but for positions, and have one token type.
var (
	robertaLayout    = newRoBERTaLayout("roberta", "RobertaModel")
	xlmRobertaLayout = newRoBERTaLayout("xlm-roberta", "XLMRobertaModel")
	camembertLayout  = newRoBERTaLayout("camembert", "CamembertModel")
)

func newRoBERTaLayout(name, class string) layout {
	return layout{
		name: name, class: class, prefix: "roberta.", pooler: true,
		layers:        layersHere,
		afterPadding:  true,
		outputDropout: hiddenDropout,
		read: func(path string, data []byte) (config, []error, error) {
			return readRoBERTa(name, path, data)
		},
		keys: func(c config) any { return robertaFile{newBERTFileOf(c), c.Padding} },
	}
}

// robertaFile has the keys of a config.json that the network depends on. A missing key has the default of transformers'
// RobertaConfig.
type robertaFile struct {
	bertFile
	Padding int `json:"pad_token_id"`
}

func readRoBERTa(layout, path string, data []byte) (config, []error, error) {
	f := robertaFile{newBERTFile(), 1}
	if layout == "roberta" {
		f.Vocabulary = 50265
	}
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	c, refused := f.config(layout)
	switch last := f.MaxPositions - 1 - minTokens; {
	case last < 0 && f.MaxPositions > 0:
		refused = append(refused, fmt.Errorf("max_position_embeddings is %d; want %d or more, %d of them after that "+
			"of pad_token_id", f.MaxPositions, 1+minTokens, minTokens))
	case last >= 0 && (f.Padding < 0 || f.Padding > last):
		refused = append(refused, fmt.Errorf("pad_token_id is %d, after which positions begin, but "+
			"max_position_embeddings is %d; want a pad_token_id from 0 to %d, which leaves %d positions", f.Padding,
			f.MaxPositions, last, minTokens))
	}
	c.Padding = f.Padding
	return c, refused, nil
}
