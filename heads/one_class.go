package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// OneClass is the objective of a head that gives each text one label: cross entropy over scores [B L]. Its zero value
// is ready to be embedded.
type OneClass struct{ loss labelLoss }

// Answers says that a text gets one label.
func (OneClass) Answers() corpus.Answer { return corpus.OneLabel }

// Units counts the texts that have a label which training knows, each as often as its label weighs.
func (o OneClass) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range gold {
		if t.LabelID >= 0 {
			n += o.loss.weight(t.LabelID)
		}
	}
	return n
}

// Loss is the cross entropy summed over labelled texts, nil if there are none.
func (o OneClass) Loss(_ *nn.Pass, scores Scores, gold []corpus.Target) *nn.Node {
	labels, any := make([]int, scores.Rows.Texts()), false
	for b, e := range scores.Rows.Example {
		labels[b] = gold[e].LabelID
		any = any || labels[b] >= 0
	}
	if !any {
		return nil
	}
	return o.loss.over(windowShares(scores.Rows)).CrossEntropy(scores.Nodes[0], labels)
}

// Predict gives each example its labels' probabilities, the mean over its texts, and the likeliest label.
func (OneClass) Predict(scores Scores) []corpus.Prediction {
	predictions := probabilities(scores, nn.Softmax)
	for i := range predictions {
		predictions[i].LabelID = largest(predictions[i].Probabilities)
	}
	return predictions
}

// probabilities gives each example those of its labels: the mean over its texts of what shares makes of a text's scores.
func probabilities(scores Scores, shares func(scores []float32) []float32) []corpus.Prediction {
	predictions := make([]corpus.Prediction, examples(scores.Rows))
	texts, values := textsOf(scores.Rows), nn.Values(scores.Nodes[0])
	labels := scores.Nodes[0].Shape()[1]
	for b, e := range scores.Rows.Example {
		p := &predictions[e]
		if p.Probabilities == nil {
			p.Probabilities = make([]float32, labels)
		}
		for c, share := range shares(values[b*labels : (b+1)*labels]) {
			p.Probabilities[c] += share / texts[e]
		}
	}
	return predictions
}

// examples returns how many examples a batch's texts are of.
func examples(rows nn.Rows) int {
	n := 0
	for _, e := range rows.Example {
		n = max(n, e+1)
	}
	return n
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
