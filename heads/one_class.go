package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// OneClass is the objective of a head that predicts one label for each text: cross entropy over logits [B L]. Its zero
// value is ready to be embedded.
type OneClass struct {
	loss       labelLoss
	calibrated Calibration
}

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
func (o OneClass) Predict(logits Logits) []corpus.Prediction {
	all := WindowLogits(logits)
	predictions := make([]outputs.LabelPrediction, len(all))
	for e, windows := range all {
		p := o.Probabilities(windows, o.calibrated)
		id := floats.Largest(p)
		predictions[e] = outputs.LabelPrediction{
			ID: id, Probabilities: p, Abstained: o.calibrated.abstains(p[id]), Set: o.calibrated.set(p),
		}
	}
	return outputs.Erase(predictions)
}

// Exclusive implements Calibrator.
func (OneClass) Exclusive() bool { return true }

// Probabilities implements Calibrator.
func (OneClass) Probabilities(windows [][]float32, c Calibration) []float32 {
	return c.meanOver(windows, nn.Softmax)
}

// Calibrate implements Calibrator.
func (o *OneClass) Calibrate(c Calibration) { o.calibrated = c }
