package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// OneClass is the objective of a head that predicts one label for each text: cross entropy over logits [B L]. Its zero
// value is ready to be embedded.
type OneClass struct{ loss labelLoss }

// Output returns outputs.Label.
func (OneClass) Output() *outputs.Kind { return outputs.Label }

// Units is the sum of the label weights of texts whose label occurs in training.
func (o OneClass) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.Targets[outputs.LabelTarget](gold) {
		if t != nil && t.ID >= 0 {
			n += o.loss.weight(t.ID)
		}
	}
	return n
}

// Loss is the cross entropy summed over labelled texts, nil if there are none.
func (o OneClass) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.Targets[outputs.LabelTarget](gold)
	labels, labelled := make([]int, logits.Rows.Texts()), false
	for b, e := range logits.Rows.Example {
		if labels[b] = corpus.Unlabelled; targets[e] != nil {
			labels[b] = targets[e].ID
		}
		labelled = labelled || labels[b] >= 0
	}
	if !labelled {
		return nil
	}
	return o.loss.over(windowWeights(logits.Rows)).CrossEntropy(logits.Nodes[0], labels)
}

// Predict returns for each example the probabilities of its labels, the mean over its windows, and the likeliest label.
func (OneClass) Predict(logits Logits) []corpus.Prediction {
	all := probabilities(logits, nn.Softmax)
	predictions := make([]outputs.LabelPrediction, len(all))
	for e, p := range all {
		predictions[e] = outputs.LabelPrediction{ID: largest(p), Probabilities: p}
	}
	return outputs.Erase(predictions)
}

// probabilities returns for each example the mean of of(logits) over its texts, [examples][L].
func probabilities(logits Logits, of func(logits []float32) []float32) [][]float32 {
	all := make([][]float32, outputs.Examples(logits.Rows))
	texts, values := textsOf(logits.Rows), nn.Values(logits.Nodes[0])
	labels := logits.Nodes[0].Shape()[1]
	for b, e := range logits.Rows.Example {
		if all[e] == nil {
			all[e] = make([]float32, labels)
		}
		for c, probability := range of(values[b*labels : (b+1)*labels]) {
			all[e][c] += probability / texts[e]
		}
	}
	return all
}

// largest returns the index of the largest value, the first of equals; 0 if all are NaN.
func largest(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] || v == v && x[best] != x[best] {
			best = i
		}
	}
	return best
}
