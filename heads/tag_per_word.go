package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// TagPerWord is the objective of a head that predicts one tag for each word: cross entropy over logits [W L], a row for
// each of seen.Rows.Words. Its zero value is ready to be embedded.
type TagPerWord struct{ loss labelLoss }

// Output returns outputs.Tags.
func (TagPerWord) Output() *outputs.Kind { return outputs.Tags }

// Units is the sum of the tag weights of words whose tag occurs in training. Words that are in no window have no tag:
// see outputs.Tags.
func (w TagPerWord) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.Targets[outputs.TagsTarget](gold) {
		if t == nil {
			continue
		}
		for _, id := range t.IDs {
			if id >= 0 {
				n += w.loss.weight(id)
			}
		}
	}
	return n
}

// Loss is the cross entropy summed over tagged words that have a row, nil if there are none.
func (w TagPerWord) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.Targets[outputs.TagsTarget](gold)
	tags, labelled := make([]int, len(logits.Rows.Words)), false
	for k := range tags {
		tags[k] = corpus.Unlabelled
	}
	for e, words := range outputs.WordRows(logits.Rows) {
		for i, k := range words {
			if t := targets[e]; k >= 0 && t != nil && i < len(t.IDs) {
				tags[k] = t.IDs[i]
				labelled = labelled || tags[k] >= 0
			}
		}
	}
	if !labelled {
		return nil
	}
	return w.loss.over(nil).CrossEntropy(logits.Nodes[0], tags)
}

// Predict returns for each word its likeliest tag and that tag's probability.
func (TagPerWord) Predict(logits Logits) []corpus.Prediction {
	predictions := make([]outputs.TagsPrediction, outputs.Examples(logits.Rows))
	values := nn.Values(logits.Nodes[0])
	tags := len(values) / max(1, len(logits.Rows.Words))
	for e, words := range outputs.WordRows(logits.Rows) {
		p := &predictions[e]
		p.IDs, p.Probabilities = make([]int, len(words)), make([]float32, len(words))
		for w, k := range words {
			if k < 0 {
				p.IDs[w] = -1
				continue
			}
			probabilities := nn.Softmax(values[k*tags : (k+1)*tags])
			p.IDs[w] = floats.Largest(probabilities)
			p.Probabilities[w] = probabilities[p.IDs[w]]
		}
	}
	return outputs.Erase(predictions)
}
