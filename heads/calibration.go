package heads

import (
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Calibrator fits the probabilities and decisions of a head of one label or any number of them to held-out examples
// after training. Heads that embed OneClass or ManyClasses have one.
type Calibrator interface {
	// Exclusive reports whether one label of a text holds, and not any number of them.
	Exclusive() bool
	// Probabilities returns those of the labels [L] of an example with these logits, [windows][L], as Predict does when
	// it is calibrated by c.
	Probabilities(windows [][]float32, c Calibration) []float32
	// Calibrate makes Predict use c; the zero value takes it back. It must not be called while another goroutine
	// predicts.
	Calibrate(c Calibration)
}

// Calibration is what was fitted to a trained head. The zero value leaves its predictions as they are.
type Calibration struct {
	// Scale and Offset make the probabilities those of the logits Scale·z + Offset in place of z, before softmax or
	// sigmoid: one number for all labels, or one for each. 1/Scale is the temperature.
	Scale, Offset []float32
	// Thresholds are the least probabilities at which each of many labels holds, in place of those of training.
	Thresholds []float32
	// MinProbability is the least probability of an answer, of a head with one label.
	MinProbability float32
	// Sets says that predictions of one label have the set of those with a probability of at least SetMinProbability.
	Sets              bool
	SetMinProbability float32
}

// WindowLogits copies the logits [B L] of each example's windows, [examples][windows][L], after the pass's Forward.
func WindowLogits(logits Logits) [][][]float32 {
	all := make([][][]float32, outputs.Examples(logits.Rows))
	values, labels := nn.Values(logits.Nodes[0]), logits.Nodes[0].Shape()[1]
	for b, e := range logits.Rows.Example {
		all[e] = append(all[e], append([]float32(nil), values[b*labels:(b+1)*labels]...))
	}
	return all
}

func (c Calibration) scaled(z []float32) []float32 {
	if c.Scale == nil && c.Offset == nil {
		return z
	}
	all := make([]float32, len(z))
	for l, v := range z {
		all[l] = at(c.Scale, l, 1)*v + at(c.Offset, l, 0)
	}
	return all
}

// at returns the number of a label, of one for all labels or one for each; otherwise of none.
func at(numbers []float32, label int, otherwise float32) float32 {
	switch len(numbers) {
	case 0:
		return otherwise
	case 1:
		return numbers[0]
	}
	return numbers[label]
}

// meanOver returns the mean over the windows of an example of the probabilities of its scaled logits, [L].
func (c Calibration) meanOver(windows [][]float32, probabilities func(logits []float32) []float32) []float32 {
	mean := make([]float32, len(windows[0]))
	for _, z := range windows {
		for l, p := range probabilities(c.scaled(z)) {
			mean[l] += p / float32(len(windows))
		}
	}
	return mean
}

// abstains reports whether a likeliest label is too improbable to be an answer.
func (c Calibration) abstains(p float32) bool {
	return c.MinProbability > 0 && !(p >= c.MinProbability)
}

// set lists the labels whose probability is at least SetMinProbability, the likeliest first; nil without sets.
func (c Calibration) set(p []float32) []int {
	if !c.Sets {
		return nil
	}
	return calibration.Set(p, c.SetMinProbability)
}
