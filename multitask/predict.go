package multitask

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Predict returns the predictions of group g for examples, whose Windows are set: predictions[h][b] is that of the
// group's head h for example b. It resets p.
func (m *Model) Predict(p *nn.Pass, g *Group, examples []*corpus.Example) ([][]corpus.Prediction, error) {
	p.Reset(0)
	p.Training, p.Precision = false, m.Precision
	a, err := cachedModel{Model: m}.forward(p, g, g.prepared(corpus.Pack(examples), nil))
	if err != nil {
		return nil, err
	}
	if err := p.Forward(); err != nil {
		return nil, err
	}
	return a.predictions(g, examples), nil
}

// predictions returns the predictions of all heads of g, after the pass's Forward.
func (a forwarded) predictions(g *Group, examples []*corpus.Example) [][]corpus.Prediction {
	var all [][]corpus.Prediction
	types := g.types()
	for h, head := range g.Heads() {
		predicted := head.Head.Predict(a.logits[h])
		for b, p := range predicted {
			types[h].Output().NamePrediction(p, examples[b], head.Labels)
		}
		all = append(all, predicted)
	}
	return all
}
