package tasks

import (
	"encoding/json"

	"github.com/jenga-nlp/jenga/corpus"
)

// Tables are the metrics of an evaluation for each label.
type Tables struct {
	Labels map[string]LabelMetrics `json:"labels"`
	// Confusion counts the predictions of a label, the second key, for a gold label, the first; pairs that never occur
	// are left out. nil if a prediction is not one label of several.
	Confusion map[string]map[string]int `json:"confusion,omitempty"`
}

// LabelMetrics are the metrics of one label that occurs in targets or predictions, as fractions. In means over labels
// an undefined precision or recall is 0, as in scikit-learn with zero_division 0; in JSON it is null.
type LabelMetrics struct {
	Precision float64 `json:"precision"` // undefined if Predicted is 0
	Recall    float64 `json:"recall"`    // undefined if Support is 0
	F1        float64 `json:"f1"`
	Support   int     `json:"support"`   // number of targets with the label
	Predicted int     `json:"predicted"` // number of predictions of the label
}

// MarshalJSON implements json.Marshaler.
func (m LabelMetrics) MarshalJSON() ([]byte, error) {
	type plain LabelMetrics // without this method
	line := struct {
		Precision *float64 `json:"precision"`
		Recall    *float64 `json:"recall"`
		plain
	}{plain: plain(m)}
	if m.Predicted > 0 {
		line.Precision = &m.Precision
	}
	if m.Support > 0 {
		line.Recall = &m.Recall
	}
	return json.Marshal(line)
}

// LabelReporter is a Task with metrics for each label.
type LabelReporter interface {
	// Tables compares the predictions of one head, as Evaluate does.
	Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables
}

var (
	_ LabelReporter = classification{}
	_ LabelReporter = tagging{}
	_ LabelReporter = ner{}
	_ LabelReporter = multiLabel{}
)

// table returns the metrics of each label.
func (ts tallies) table() map[string]LabelMetrics {
	labels := map[string]LabelMetrics{}
	for label, t := range ts {
		s := t.rates()
		labels[label] = LabelMetrics{s.precision, s.recall, s.f1, t.gold, t.predicted}
	}
	return labels
}

// confusion counts the predicted labels of each gold label.
func confusion(gold, predicted []string) map[string]map[string]int {
	counts := map[string]map[string]int{}
	for i, g := range gold {
		if counts[g] == nil {
			counts[g] = map[string]int{}
		}
		counts[g][predicted[i]]++
	}
	return counts
}

// Tables implements LabelReporter.
func (c classification) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := labelsOf(gold, predicted)
	return Tables{tallyLabels(want, got).table(), confusion(want, got)}
}

// Tables implements LabelReporter, over the tags of all words.
func (t tagging) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := wordTags(gold, predicted)
	return Tables{tallyLabels(want, got).table(), confusion(want, got)}
}

// Tables implements LabelReporter, over the spans of each label.
func (n ner) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := tagsOf(gold, predicted)
	ts, _, _ := tallySpans(want, got)
	return Tables{Labels: ts.table()}
}

// Tables implements LabelReporter; each label is counted by itself.
func (m multiLabel) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	return Tables{Labels: tallyMany(gold, predicted).table()}
}
