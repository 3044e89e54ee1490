package transformer

import (
	"encoding/json"
	"fmt"
)

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
