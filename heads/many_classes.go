package heads

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
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
	all := probabilities(logits, nn.Sigmoids)
	predictions := make([]outputs.LabelsPrediction, len(all))
	for e, p := range all {
		predictions[e].Probabilities = p
		m.decide(&predictions[e])
	}
	return outputs.Erase(predictions)
}

// decide lists the labels that hold.
func (m ManyClasses) decide(p *outputs.LabelsPrediction) {
	p.IDs = []int{}
	for c, probability := range p.Probabilities {
		if probability >= m.threshold(c) {
			p.IDs = append(p.IDs, c)
		}
	}
}

func (m ManyClasses) threshold(c int) float32 {
	if m.thresholds == nil {
		return 0.5
	}
	return m.thresholds.Data[c]
}

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
	var all []decision
	each := make([][]decision, len(m.thresholds.Data))
	predictions := outputs.Predictions[outputs.LabelsPrediction](predicted)
	for i, t := range outputs.Targets[outputs.LabelsTarget](gold) {
		if t == nil {
			continue
		}
		for c, probability := range predictions[i].Probabilities {
			d := decision{probability, slices.Contains(t.IDs, c)}
			each[c] = append(each[c], d)
			all = append(all, d)
		}
	}
	switch m.tune {
	case "shared":
		if best, ok := bestThreshold(all); ok {
			for c := range m.thresholds.Data {
				m.thresholds.Data[c] = best
			}
		}
	case "each":
		for c, decisions := range each {
			if best, ok := bestThreshold(decisions); ok {
				m.thresholds.Data[c] = best
			}
		}
	}
	for _, p := range predictions {
		m.decide(p)
	}
}

// Untuned implements Tuner.
func (ManyClasses) Untuned(name string) (what, then string) {
	return fmt.Sprintf("no evaluation tunes head %q", name), "its labels hold from its threshold on"
}

// decision is a label's probability, and whether it holds.
type decision struct {
	probability float32
	holds       bool
}

// bestThreshold returns the threshold of the best F1, half way between two probabilities that occur; of equals the one
// nearest to 1/2. ok is false if no label holds, or a probability is NaN.
func bestThreshold(decisions []decision) (best float32, ok bool) {
	// descending
	slices.SortFunc(decisions, func(a, b decision) int { return cmp.Compare(b.probability, a.probability) })
	holding := 0
	for _, d := range decisions {
		if d.probability != d.probability {
			return 0, false
		}
		if d.holds {
			holding++
		}
	}
	right, bestF1 := 0, 0.0
	for i, d := range decisions {
		if d.holds {
			right++
		}
		next := float32(0)
		if i+1 < len(decisions) {
			next = decisions[i+1].probability
		}
		if next == d.probability {
			continue // both are at or above a threshold, or neither is
		}
		f1, middle := 2*float64(right)/float64(i+1+holding), (d.probability+next)/2
		if middle == next { // adjacent floats: the lower one would be predicted too
			middle = d.probability
		}
		closer := math.Abs(float64(middle)-0.5) < math.Abs(float64(best)-0.5)
		if f1 > bestF1 || f1 == bestF1 && f1 > 0 && closer {
			best, bestF1 = middle, f1
		}
	}
	return best, bestF1 > 0
}
