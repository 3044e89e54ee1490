package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("mlm", struct{}{}, func(_ struct{}, env Env) (Task, error) { return mlm{env.Heads}, nil })
}

// mlm is masked language modelling: it predicts the hidden tokens of texts, whose records have no label. No other task
// reads its texts. Its metric is accuracy, the fraction of hidden tokens whose likeliest prediction is right.
type mlm struct{ heads []string }

func (m mlm) Output() *outputs.Kind { return outputs.HiddenTokens }

func (m mlm) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, m.heads, nil, func(corpus.Example, string) (corpus.Target, error) {
		return &outputs.HiddenTarget{IDs: []int32{}}, nil
	})
}

func (m mlm) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	right, all := 0.0, 0.0
	for g, p := range pairs[outputs.HiddenTarget, outputs.HiddenPrediction](gold, predicted) {
		for k, id := range g.IDs {
			all++
			if p.Tokens[k].Guesses[0].ID == id {
				right++
			}
		}
	}
	return []Metric{{Name: "accuracy", Value: right / max(1, all)}}
}
