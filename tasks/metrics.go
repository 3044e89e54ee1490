package tasks

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

type tally struct{ right, gold, predicted int }

// tallies holds a tally for each label that occurs, in gold or predicted.
type tallies map[string]*tally

func (ts tallies) label(name string) *tally {
	t := ts[name]
	if t == nil {
		t = new(tally)
		ts[name] = t
	}
	return t
}

// rates are the precision, recall and F1 of one label, or an average over labels.
type rates struct{ precision, recall, f1 float64 }

// metrics are those of the rates, whose names begin and end alike.
func (r rates) metrics(prefix, suffix string) []Metric {
	return []Metric{
		{Name: prefix + "f1" + suffix, Value: r.f1},
		{Name: prefix + "precision" + suffix, Value: r.precision},
		{Name: prefix + "recall" + suffix, Value: r.recall},
	}
}

func (t tally) rates() rates {
	return rates{ratio(t.right, t.predicted), ratio(t.right, t.gold), ratio(2*t.right, t.gold+t.predicted)}
}

func (ts tallies) sum() tally {
	var sum tally
	for _, t := range ts {
		sum.right += t.right
		sum.gold += t.gold
		sum.predicted += t.predicted
	}
	return sum
}

// macro is the unweighted mean over the labels that occur.
func (ts tallies) macro() rates {
	return ts.mean(func(tally) int { return 1 })
}

// weighted is the mean over labels, weighted by their counts in gold.
func (ts tallies) weighted() rates {
	return ts.mean(func(t tally) int { return t.gold })
}

func (ts tallies) mean(weight func(tally) int) rates {
	var sum rates
	total := 0
	for _, label := range slices.Sorted(maps.Keys(ts)) { // float sums depend on their order
		t := *ts[label]
		s, w := t.rates(), weight(t)
		sum.precision += float64(w) * s.precision
		sum.recall += float64(w) * s.recall
		sum.f1 += float64(w) * s.f1
		total += w
	}
	if total == 0 {
		return rates{}
	}
	n := float64(total)
	return rates{sum.precision / n, sum.recall / n, sum.f1 / n}
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func tallyLabels(gold, predicted []string) tallies {
	ts := tallies{}
	for i, g := range gold {
		ts.label(g).gold++
		ts.label(predicted[i]).predicted++
		if g == predicted[i] {
			ts.label(g).right++
		}
	}
	return ts
}

// judgeLabels computes the metrics of one label per text. The averages are those of scikit-learn's
// precision_recall_fscore_support with zero_division 0, over the labels that occur.
func judgeLabels(gold, predicted []string) []Metric {
	ts := tallyLabels(gold, predicted)
	macro, micro, weighted := ts.macro(), ts.sum().rates(), ts.weighted()
	return []Metric{
		{Name: "accuracy", Value: ratio(ts.sum().right, len(gold))},
		{Name: "precision_macro", Value: macro.precision},
		{Name: "recall_macro", Value: macro.recall},
		{Name: "f1_macro", F1: true, Value: macro.f1},
		{Name: "precision_micro", Value: micro.precision},
		{Name: "recall_micro", Value: micro.recall},
		{Name: "f1_micro", Value: micro.f1},
		{Name: "precision_weighted", Value: weighted.precision},
		{Name: "recall_weighted", Value: weighted.recall},
		{Name: "f1_weighted", Value: weighted.f1},
		{Name: "mcc", Value: ts.correlation()},
	}
}

// correlation is Matthews' coefficient for any number of labels (Gorodkin 2004, "Comparing two K-category assignments
// by a K-category correlation coefficient"), 0 if gold or predicted has only one label.
func (ts tallies) correlation() float64 {
	var goldSquares, predictedSquares, products float64
	for _, t := range ts { // whole numbers: any order gives the same sum
		goldSquares += float64(t.gold) * float64(t.gold)
		predictedSquares += float64(t.predicted) * float64(t.predicted)
		products += float64(t.gold) * float64(t.predicted)
	}
	sum := ts.sum()
	n := float64(sum.gold)
	spread := (n*n - goldSquares) * (n*n - predictedSquares)
	if spread == 0 {
		return 0
	}
	return (float64(sum.right)*n - products) / math.Sqrt(spread)
}

// tallySpans tallies the spans that tags mark, and counts the words with a gold tag and those whose tag is right.
func tallySpans(gold, predicted [][]string) (ts tallies, right, words int) {
	ts = tallies{}
	for i, tags := range gold {
		got := judged(tags, predicted[i])
		for j, tag := range tags {
			switch tag {
			case "":
				continue
			case got[j]:
				right++
			}
			words++
		}
		ts.addSpans(spansOf(tags), spansOf(got))
	}
	return ts, right, words
}

// judged returns the predicted tags of the words that have a gold tag, "" for others.
func judged(gold, predicted []string) []string {
	tags := slices.Clone(predicted)
	for j, tag := range gold {
		if tag == "" {
			tags[j] = ""
		}
	}
	return tags
}

// judgeSpans compares the spans that tags mark; a span is right if both its ends and its label are. The averages are
// those of seqeval's default mode, accuracy is the fraction of words with the right tag. Words without a gold tag, "",
// are left out and end a span.
func judgeSpans(gold, predicted [][]string) []Metric {
	ts, right, words := tallySpans(gold, predicted)
	all := slices.Concat(ts.sum().rates().metrics("span_", ""), ts.macro().metrics("span_", "_macro"),
		ts.weighted().metrics("span_", "_weighted"), []Metric{{Name: "accuracy", Value: ratio(right, words)}})
	all[0].F1 = true
	return all
}

func (ts tallies) addSpans(gold, predicted []outputs.TagSpan) {
	there := map[outputs.TagSpan]bool{}
	for _, s := range gold {
		ts.label(s.Label).gold++
		there[s] = true
	}
	for _, s := range predicted {
		t := ts.label(s.Label)
		t.predicted++
		if there[s] {
			t.right++
		}
	}
}

func tagsOf(gold []corpus.Target, predicted []corpus.Prediction) (want, got [][]string) {
	for g, p := range pairs[outputs.TagsTarget, outputs.TagsPrediction](gold, predicted) {
		checkLengths(len(g.Tags), len(p.Tags), "words")
		want, got = append(want, g.Tags), append(got, p.Tags)
	}
	return want, got
}

func labelsOf(gold []corpus.Target, predicted []corpus.Prediction) (want, got []string) {
	for g, p := range pairs[outputs.LabelTarget, outputs.LabelPrediction](gold, predicted) {
		want, got = append(want, g.Label), append(got, p.Label)
	}
	return want, got
}

// pairs iterates over targets and the predictions for them, of which there must be as many.
func pairs[T, P any](gold []corpus.Target, predicted []corpus.Prediction) iter.Seq2[*T, *P] {
	checkLengths(len(gold), len(predicted), "targets")
	return func(yield func(*T, *P) bool) {
		for i := range gold {
			if !yield(outputs.As[T](gold[i]), outputs.As[P](predicted[i])) {
				return
			}
		}
	}
}

// checkLengths panics unless there are as many predictions as targets.
func checkLengths(gold, predicted int, what string) {
	if gold != predicted {
		panic(fmt.Sprintf("tasks: %d predictions for %d %s", predicted, gold, what))
	}
}

// MarkUndefined marks the metrics of t that are undefined for gold.
func MarkUndefined(t Task, gold []corpus.Target, metrics []Metric) {
	undefined := DescriptionOf(t).Undefined
	for i, m := range metrics {
		metrics[i].Undefined = undefined != nil && undefined(gold, m.Name)
	}
}

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

// tabulate returns the tables of one label of several for each text or word.
func tabulate(gold, predicted []string) Tables {
	return Tables{tallyLabels(gold, predicted).table(), confusion(gold, predicted)}
}

func (ts tallies) table() map[string]LabelMetrics {
	labels := map[string]LabelMetrics{}
	for label, t := range ts {
		s := t.rates()
		labels[label] = LabelMetrics{s.precision, s.recall, s.f1, t.gold, t.predicted}
	}
	return labels
}

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
