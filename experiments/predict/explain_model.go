package predict

import (
	"context"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/batch"
)

// explaining is a call of Model.Explain.
type explaining struct {
	ctx     context.Context
	options ExplainOptions
	reading reading
}

// newExplained starts a queue of explanations, which are made one after the other by a predictor of their own, so that
// they do not disturb predictions.
func newExplained(p *Predictor, most int) *batch.Queue[explaining, Explanation] {
	one := batch.Options{Size: 1, Most: most}
	return batch.New(one, func(explaining) int { return 1 }, func(items []explaining) ([]Explanation, error) {
		all := make([]Explanation, len(items))
		for i, item := range items {
			var err error
			if all[i], err = p.explain(item.ctx, item.options, item.reading); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

// Explain returns the predictions for an example, and what the model computed on the way to them, in float32 whatever
// Options.Precision is, but of a quantized run in int8. Calls at the same time are answered one after the other, beside
// predictions. Where ctx ends before, Explain returns the context's error.
func (m *Model) Explain(ctx context.Context, o ExplainOptions, example *corpus.Example) (Explanation, error) {
	if err := m.CheckForm(o.Form); err != nil {
		return Explanation{}, err
	}
	o.Form = o.Form.clone()
	r, err := m.predictor.readExplained(o, cloneExample(example))
	if err != nil {
		return Explanation{}, err
	}
	all, err := m.explained.Do(ctx, explaining{ctx, o, r})
	if err != nil {
		return Explanation{}, queueError(err)
	}
	return all[0], nil
}
