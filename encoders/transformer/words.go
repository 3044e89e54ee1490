package transformer

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

var _ encoders.Attributable = (*encoder)(nil)

// Words implements encoders.Attributable.
func (e *encoder) Words(ids []int32) ([]float32, error) {
	one := corpus.Tokens{IDs: ids, Rows: nn.Rows{Starts: []int{0, len(ids)}, Example: []int{0}}}
	if err := encoders.CheckTokens(one, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	if err := e.checkWords(ids); err != nil {
		return nil, err
	}
	words := make([]float32, len(ids)*e.embeddings.width)
	gather(e.embeddings, words, e.embeddings.words, ids)
	return words, nil
}

// EncodeWords implements encoders.Attributable.
func (e *encoder) EncodeWords(p *nn.Pass, tokens corpus.Tokens, words []float32,
	wanted nn.LayerSet) ([][]float32, error) {
	if p.Training || len(words) != len(tokens.IDs)*e.embeddings.width {
		panic("transformer: EncodeWords in training, or of words that do not fit the tokens")
	}
	return e.encode(p, tokens, words, 0, wanted)
}

// BackwardWords implements encoders.Attributable.
func (e *encoder) BackwardWords(p *nn.Pass, at [][]float32) []float32 {
	s, ok := p.Get(e).(*encoding)
	if !ok || s.lowest > 0 {
		panic("transformer: BackwardWords of a pass without EncodeWords")
	}
	return e.backward(p, s, at, 0, nn.Gradients{})
}
