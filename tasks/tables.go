package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
)

// Tables are what an evaluation tells of each label.
type Tables struct {
	Labels map[string]LabelMetrics `json:"labels"`
	// Confusion counts how often a gold label, the first name, was taken for a label, the second; pairs that never
	// occur are left out. nil where a prediction is not one label of several.
	Confusion map[string]map[string]int `json:"confusion,omitempty"`
}

// LabelScore is how one label does, in fractions.
type LabelMetrics struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	Support   int     `json:"support"` // how often it is the gold one
}

// Tabler is a Task whose targets are made of labels.
type LabelReporter interface {
	// Tables compares the predictions of one head, as Judge does.
	Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables
}

var (
	_ LabelReporter = classification{}
	_ LabelReporter = tagging{}
	_ LabelReporter = ner{}
	_ LabelReporter = multiLabel{}
)

// table writes the tallies of labels.
func (ts tallies) table() map[string]LabelMetrics {
	labels := map[string]LabelMetrics{}
	for label, t := range ts {
		s := t.scores()
		labels[label] = LabelMetrics{s.precision, s.recall, s.f1, t.gold}
	}
	return labels
}

// confusion counts which label was taken for which.
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

// Tables tells of each label.
func (c classification) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := labelsOf(gold, predicted)
	return Tables{tallyLabels(want, got).table(), confusion(want, got)}
}

// Tables tells of each tag.
func (t tagging) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := wordTags(gold, predicted)
	return Tables{tallyLabels(want, got).table(), confusion(want, got)}
}

// Tables tells of the spans of each label.
func (n ner) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := tagsOf(gold, predicted)
	ts, _, _ := tallySpans(want, got)
	return Tables{Labels: ts.table()}
}

// Tables tells of each label, whatever others hold beside it.
func (m multiLabel) Tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	return Tables{Labels: tallyMany(gold, predicted).table()}
}
