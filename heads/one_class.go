package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// OneClass is the objective of a head that gives each text one label: cross entropy over scores [B L]. Its zero value
// is ready to be embedded.
type OneClass struct{ loss labelLoss }

// Output says that a text gets one label.
func (OneClass) Output() *outputs.Kind { return outputs.Label }

// Units counts the texts that have a label which training knows, each as often as its label weighs.
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
func (o OneClass) Loss(_ *nn.Pass, scores Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.Targets[outputs.LabelTarget](gold)
	labels, labelled := make([]int, scores.Rows.Texts()), false
	for b, e := range scores.Rows.Example {
		if labels[b] = corpus.Unlabelled; targets[e] != nil {
			labels[b] = targets[e].ID
		}
		labelled = labelled || labels[b] >= 0
	}
	if !labelled {
		return nil
	}
	return o.loss.over(windowShares(scores.Rows)).CrossEntropy(scores.Nodes[0], labels)
}

// Predict gives each example its labels' probabilities, the mean over its texts, and the likeliest label.
func (OneClass) Predict(scores Logits) []corpus.Prediction {
	all := probabilities(scores, nn.Softmax)
	predictions := make([]outputs.LabelPrediction, len(all))
	for e, p := range all {
		predictions[e] = outputs.LabelPrediction{ID: largest(p), Probabilities: p}
	}
	return outputs.Erase(predictions)
}

// probabilities gives each example those of its labels: the mean over its texts of what of makes of a text's scores.
func probabilities(scores Logits, of func(scores []float32) []float32) [][]float32 {
	all := make([][]float32, outputs.Examples(scores.Rows))
	texts, values := textsOf(scores.Rows), nn.Values(scores.Nodes[0])
	labels := scores.Nodes[0].Shape()[1]
	for b, e := range scores.Rows.Example {
		if all[e] == nil {
			all[e] = make([]float32, labels)
		}
		for c, probability := range of(values[b*labels : (b+1)*labels]) {
			all[e][c] += probability / texts[e]
		}
	}
	return all
}

// largest returns the place of the largest value, the first of equals; 0 where nothing is a number.
func largest(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] || v == v && x[best] != x[best] {
			best = i
		}
	}
	return best
}
