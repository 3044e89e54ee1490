package outputs

import (
	"math"

	"github.com/jenga-nlp/jenga/corpus"
)

// Decision is which probabilities of labels make an answer.
type Decision struct {
	// Thresholds are the least probabilities of each label, in place of the head's, NaN: that of the head; nil: those
	// of the head.
	Thresholds     []float32
	MinProbability float32 // a less probable label is no answer, whatever the thresholds are
}

// threshold returns that of a label, NaN for that of the head.
func (d Decision) threshold(label int) float32 {
	if d.Thresholds == nil {
		return float32(math.NaN())
	}
	return d.Thresholds[label]
}

// Decides reports whether predictions are decided by the probabilities of labels.
func (k *Kind) Decides() bool { return k.decide != nil }

// Decide changes which labels a named prediction answers. The kind must be one that Decides.
func (k *Kind) Decide(p corpus.Prediction, by Decision, labels *corpus.Labels) {
	k.decide(p, by, labels)
}
