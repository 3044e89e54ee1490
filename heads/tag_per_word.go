package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// TagPerWord is the objective of a head that gives each word one tag: cross entropy over scores [W L], a row for each
// of seen.Rows.Words. Its zero value is ready to be embedded.
type TagPerWord struct{ loss labelLoss }

// Output says that a word gets one tag.
func (TagPerWord) Output() *outputs.Kind { return outputs.Tags }

// Units counts the words that have a tag which training knows, each as often as its tag weighs. Words that no window
// holds have none: see outputs.Tags.
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
func (w TagPerWord) Loss(_ *nn.Pass, scores Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.Targets[outputs.TagsTarget](gold)
	tags, labelled := make([]int, len(scores.Rows.Words)), false
	for k := range tags {
		tags[k] = corpus.Unlabelled
	}
	for e, words := range outputs.WordRows(scores.Rows) {
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
	return w.loss.over(nil).CrossEntropy(scores.Nodes[0], tags)
}

// Predict gives each word its likeliest tag and that tag's probability.
func (TagPerWord) Predict(scores Logits) []corpus.Prediction {
	predictions := make([]outputs.TagsPrediction, outputs.Examples(scores.Rows))
	values := nn.Values(scores.Nodes[0])
	tags := len(values) / max(1, len(scores.Rows.Words))
	for e, words := range outputs.WordRows(scores.Rows) {
		p := &predictions[e]
		p.IDs, p.Probabilities = make([]int, len(words)), make([]float32, len(words))
		for w, k := range words {
			if k < 0 {
				p.IDs[w] = -1
				continue
			}
			probabilities := nn.Softmax(values[k*tags : (k+1)*tags])
			p.IDs[w] = largest(probabilities)
			p.Probabilities[w] = probabilities[p.IDs[w]]
		}
	}
	return outputs.Erase(predictions)
}
