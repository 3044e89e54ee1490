package heads

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// ManyClasses is the objective of a head that predicts any number of labels for each text: binary cross entropy over
// logits [B L], a binary decision for each label. A label holds where its probability reaches its threshold, 1/2 unless
// tuned. Its zero value is ready to be embedded.
type ManyClasses struct {
	loss       labelLoss
	thresholds *nn.Param // [L], do not learn by gradients; nil: 1/2 each
	tune       string    // none | shared | each
	calibrated Calibration
}

// ThresholdOptions are the keys for the decision thresholds of a head of many labels.
type ThresholdOptions struct {
	Threshold float64 `yaml:"threshold" range:"[0,1]" doc:"least probability at which a label holds, for many labels"`
	Tune      string  `yaml:"tune" choice:"shared|each|none" doc:"what evaluations on dev choose instead of threshold: one threshold for the best micro F1, each label's own for its best F1, or none, which keeps threshold"`
}

// TunedThreshold are the options of one threshold that is tuned on dev.
var TunedThreshold = ThresholdOptions{Threshold: 0.5, Tune: "shared"}

// filled returns the options with one tuned threshold where they are left out, as Go code may do.
func (o ThresholdOptions) filled() ThresholdOptions {
	if o == (ThresholdOptions{}) {
		return TunedThreshold
	}
	return o
}

// newManyClasses makes the objective, with its thresholds in the env's parameters.
func newManyClasses(o ThresholdOptions, loss labelLoss, env Env) (ManyClasses, error) {
	if o.Tune != "none" && o.Threshold != TunedThreshold.Threshold {
		return ManyClasses{}, fmt.Errorf("threshold %v has no effect: tune: %s chooses another on dev; tune: none "+
			"keeps it",
			o.Threshold, o.Tune)
	}
	m := ManyClasses{loss: loss, thresholds: env.Params.Zeros("thresholds", len(env.Labels)), tune: o.Tune}
	m.thresholds.Frozen = true
	for c := range m.thresholds.Data {
		m.thresholds.Data[c] = float32(o.Threshold)
	}
	return m, nil
}

// Output returns outputs.Labels.
func (ManyClasses) Output() *outputs.Kind { return outputs.Labels }

// Units counts the labelled texts.
func (ManyClasses) Units(gold []corpus.Target) float64 { return labelled(gold) }

// Loss is the mean over labels of the binary cross entropy, summed over labelled texts; nil if there are none.
func (m ManyClasses) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	texts, labels := logits.Rows.Texts(), logits.Nodes[0].Shape()[1]
	targets := outputs.Targets[outputs.LabelsTarget](gold)
	holds, labelled := make([]int8, texts*labels), false
	weights, windows := make([]float32, texts), textsOf(logits.Rows)
	for b, e := range logits.Rows.Example {
		weights[b] = 1 / (windows[e] * float32(labels))
		row := holds[b*labels : (b+1)*labels]
		if targets[e] == nil {
			for c := range row {
				row[c] = corpus.Unlabelled
			}
			continue
		}
		labelled = true
		for _, id := range targets[e].IDs {
			if id >= 0 {
				row[id] = 1
			}
		}
	}
	if !labelled {
		return nil
	}
	return m.loss.over(weights).BinaryCrossEntropy(logits.Nodes[0], holds)
}

// Predict returns for each example the probabilities of its labels, the mean over its windows, and the labels that
// hold.
func (m ManyClasses) Predict(logits Logits) []corpus.Prediction {
	all := WindowLogits(logits)
	predictions := make([]outputs.LabelsPrediction, len(all))
	for e, windows := range all {
		predictions[e].Probabilities = m.Probabilities(windows, m.calibrated)
	}
	erased := outputs.Erase(predictions)
	m.decide(outputs.Predictions[outputs.LabelsPrediction](erased))
	return erased
}

// decide lists the labels that hold.
func (m ManyClasses) decide(predictions []*outputs.LabelsPrediction) {
	for _, p := range predictions {
		p.Decide(m.decidedFrom(len(p.Probabilities)))
	}
}

// decidedFrom returns the least probability at which each of n labels holds.
func (m ManyClasses) decidedFrom(n int) []float32 {
	switch {
	case m.calibrated.Thresholds != nil:
		return m.calibrated.Thresholds
	case m.thresholds != nil:
		return m.thresholds.Data
	}
	return slices.Repeat([]float32{0.5}, n)
}

// Exclusive implements Calibrator.
func (ManyClasses) Exclusive() bool { return false }

// Probabilities implements Calibrator.
func (ManyClasses) Probabilities(windows [][]float32, c Calibration) []float32 {
	return c.meanOver(windows, nn.Sigmoids)
}

// Calibrate implements Calibrator.
func (m *ManyClasses) Calibrate(c Calibration) { m.calibrated = c }

// Thresholds lists the least probability at which each label holds; nil for the zero value, where it is 1/2 for all.
func (m ManyClasses) Thresholds() []float32 {
	if m.thresholds == nil {
		return nil
	}
	return m.thresholds.Data
}

// Tune chooses the thresholds from the predictions on dev, and updates those predictions.
func (m ManyClasses) Tune(gold []corpus.Target, predicted []corpus.Prediction) {
	if m.thresholds == nil {
		return
	}
	var all []calibration.Decision
	each := make([][]calibration.Decision, len(m.thresholds.Data))
	predictions := outputs.Predictions[outputs.LabelsPrediction](predicted)
	for i, t := range outputs.Targets[outputs.LabelsTarget](gold) {
		if t == nil {
			continue
		}
		for c, probability := range predictions[i].Probabilities {
			d := calibration.Decision{Probability: probability, Holds: slices.Contains(t.IDs, c)}
			each[c] = append(each[c], d)
			all = append(all, d)
		}
	}
	switch m.tune {
	case "shared":
		if best, ok := calibration.BestF1(all); ok {
			for c := range m.thresholds.Data {
				m.thresholds.Data[c] = best
			}
		}
	case "each":
		for c, decisions := range each {
			if best, ok := calibration.BestF1(decisions); ok {
				m.thresholds.Data[c] = best
			}
		}
	}
	m.decide(predictions)
}

// Untuned implements Tuner.
func (ManyClasses) Untuned(name string) (what, then string) {
	return fmt.Sprintf("no evaluation tunes head %q", name), "its labels hold from its threshold on"
}
