package encoders

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

var _ Attributable = (*bilstm)(nil)

// Words implements Attributable.
func (e *bilstm) Words(ids []int32) ([]float32, error) {
	one := corpus.Tokens{IDs: ids, Rows: nn.Rows{Starts: []int{0, len(ids)}, Example: []int{0}}}
	if err := CheckTokens(one, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	words := make([]float32, len(ids)*e.config.Embedding)
	kernel.Gather(words, e.words.Data, ids, e.config.Embedding)
	return words, nil
}

// EncodeWords implements Attributable.
func (e *bilstm) EncodeWords(p *nn.Pass, tokens corpus.Tokens, words []float32,
	wanted nn.LayerSet) ([][]float32, error) {
	if p.Training || len(words) != len(tokens.IDs)*e.config.Embedding {
		panic("encoders: EncodeWords of a bilstm in training, or of words that do not fit the tokens")
	}
	if err := CheckTokens(tokens, e.config.Vocabulary, 0); err != nil {
		return nil, err
	}
	return e.encode(p, tokens, words, wanted), nil
}

// BackwardWords implements Attributable.
func (e *bilstm) BackwardWords(p *nn.Pass, at [][]float32) []float32 {
	s, ok := p.Get(e).(*bilstmStates)
	if !ok {
		panic("encoders: BackwardWords of a bilstm's pass that was not encoded")
	}
	return e.backward(p, s, at, 0, nn.Gradients{})
}
