package tasks

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() { Register("similarity", RegressionOptions{}, NewSimilarity) }

// similarity predicts the similarity of the two texts of a pair, a number. Unlike in a regression, they are encoded
// separately, so that texts encoded before can be compared. It reads the fields of a regression and has its metrics,
// of which STS benchmarks report pearson and spearman (Cer et al. 2017).
type similarity struct{ regression }

// NewSimilarity makes a task whose heads each predict a number for a pair. A record has the fields text, pair, and
// value, or label, or score, or value.HEAD for a head of its own.
func NewSimilarity(o RegressionOptions, env Env) (Task, error) {
	task, err := NewRegression(o, env)
	if err != nil {
		return nil, err
	}
	return similarity{task.(regression)}, nil
}

func (s similarity) Output() *outputs.Kind { return outputs.Similarity }

func (s similarity) Example(r corpus.Record) (corpus.Example, error) {
	e, err := s.regression.Example(r)
	if err == nil && !e.Paired {
		return corpus.Example{}, fmt.Errorf("%s: a text without its pair; data: {pair: FIELD} names the field that "+
			"holds it", r.Place)
	}
	return e, err
}
