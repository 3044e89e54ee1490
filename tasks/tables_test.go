package tasks

import (
	"math"
	"reflect"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func singleLabelTargets(labels ...string) (gold []corpus.Target) {
	for _, label := range labels {
		gold = append(gold, &outputs.LabelTarget{Label: label})
	}
	return gold
}

func singleLabelPredictions(labels ...string) (predicted []corpus.Prediction) {
	for _, label := range labels {
		predicted = append(predicted, &outputs.LabelPrediction{Label: label})
	}
	return predicted
}

func tagTargets(texts ...[]string) (gold []corpus.Target) {
	for _, tags := range texts {
		gold = append(gold, &outputs.TagsTarget{Tags: tags})
	}
	return gold
}

func tagPredictions(texts ...[]string) (predicted []corpus.Prediction) {
	for _, tags := range texts {
		predicted = append(predicted, &outputs.TagsPrediction{Tags: tags})
	}
	return predicted
}

func labelTargets(texts ...[]string) (gold []corpus.Target) {
	for _, labels := range texts {
		gold = append(gold, &outputs.LabelsTarget{Labels: labels})
	}
	return gold
}

func labelPredictions(texts ...[]string) (predicted []corpus.Prediction) {
	for _, labels := range texts {
		predicted = append(predicted, &outputs.LabelsPrediction{Labels: labels})
	}
	return predicted
}

func TestTables(t *testing.T) {
	for _, c := range []struct {
		name string
		got  Tables
		want Tables
	}{
		{
			"one label: a label that is never predicted has a precision of 0, one that is never right an F1 of 0",
			classification{}.Tables(singleLabelTargets("a", "a", "a", "b", "b", "c", "d"),
				singleLabelPredictions("a", "a", "b", "b", "c", "c", "e")),
			Tables{
				map[string]LabelMetrics{
					"a": {Precision: 1, Recall: 2. / 3, F1: 0.8, Support: 3, Predicted: 2},
					"b": {Precision: 0.5, Recall: 0.5, F1: 0.5, Support: 2, Predicted: 2},
					"c": {Precision: 0.5, Recall: 1, F1: 2. / 3, Support: 1, Predicted: 2},
					"d": {Support: 1},
					"e": {Predicted: 1},
				},
				map[string]map[string]int{"a": {"a": 2, "b": 1}, "b": {"b": 1, "c": 1}, "c": {"c": 1}, "d": {"e": 1}},
			},
		},
		{
			"a tag for each word: words without a gold tag do not count",
			tagging{}.Tables(
				tagTargets([]string{"X", "", "Y"}, []string{"X"}),
				tagPredictions([]string{"X", "Y", "X"}, []string{"X"})),
			Tables{
				map[string]LabelMetrics{"X": {Precision: 2. / 3, Recall: 1, F1: 0.8, Support: 2, Predicted: 3},
					"Y": {Support: 1}},
				map[string]map[string]int{"X": {"X": 2}, "Y": {"X": 1}},
			},
		},
		{
			"spans: no confusion matrix",
			ner{}.Tables(
				tagTargets([]string{"B-x", "I-x", "O", "B-y"}, []string{"B-x", "O", "", "B-y"}),
				tagPredictions([]string{"B-x", "I-x", "O", "B-x"}, []string{"B-x", "I-x", "B-y", "B-y"})),
			Tables{Labels: map[string]LabelMetrics{
				"x": {Precision: 1. / 3, Recall: 0.5, F1: 0.4, Support: 2, Predicted: 3},
				"y": {Precision: 1, Recall: 0.5, F1: 2. / 3, Support: 2, Predicted: 1},
			}},
		},
		{
			"many labels: no confusion matrix",
			multiLabel{}.Tables(
				labelTargets([]string{"a", "b"}, []string{}, []string{"a"}),
				labelPredictions([]string{"a"}, []string{"b"}, []string{"a", "c"})),
			Tables{Labels: map[string]LabelMetrics{"a": {Precision: 1, Recall: 1, F1: 1, Support: 2, Predicted: 2},
				"b": {Support: 1, Predicted: 1}, "c": {Predicted: 1}}},
		},
		{"no examples", classification{}.Tables(nil, nil),
			Tables{map[string]LabelMetrics{}, map[string]map[string]int{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Errorf("got\n%+v\nwant\n%+v", c.got, c.want)
			}
		})
	}
}

// The means over the labels of a table are the averages of scikit-learn and seqeval in testdata/metrics.json.
func TestTablesAverageToTheMetrics(t *testing.T) {
	check := func(t *testing.T, labels map[string]LabelMetrics, prefix string, want map[string]float64) {
		t.Helper()
		var macro, weighted LabelMetrics
		for _, s := range labels {
			n := float64(s.Support)
			macro.Precision, macro.Recall, macro.F1 = macro.Precision+s.Precision, macro.Recall+s.Recall, macro.F1+s.F1
			weighted.Precision, weighted.Recall, weighted.F1 = weighted.Precision+n*s.Precision,
				weighted.Recall+n*s.Recall, weighted.F1+n*s.F1
			weighted.Support += s.Support
		}
		for suffix, got := range map[string]struct {
			LabelMetrics
			of int
		}{"_macro": {macro, len(labels)}, "_weighted": {weighted, weighted.Support}} {
			n := float64(max(1, got.of))
			for name, v := range map[string]float64{"precision": got.Precision / n, "recall": got.Recall / n,
				"f1": got.F1 / n} {
				if w, ok := want[prefix+name+suffix]; !ok || !(math.Abs(v-w) <= 1e-12) {
					t.Errorf("mean %s%s%s of the labels = %v, want %v", prefix, name, suffix, v, w)
				}
			}
		}
	}
	g := readGoldens(t)
	for _, c := range g.Labels {
		t.Run("labels: "+c.Name, func(t *testing.T) {
			tables := classification{}.Tables(singleLabelTargets(c.Gold...), singleLabelPredictions(c.Predicted...))
			check(t, tables.Labels, "", c.Want)
			right := 0
			for gold, row := range tables.Confusion {
				support := 0
				for _, n := range row {
					support += n
				}
				if right += row[gold]; support != tables.Labels[gold].Support {
					t.Errorf("row %s of the confusion matrix sums to %d, want %d", gold, support,
						tables.Labels[gold].Support)
				}
			}
			if got, want := float64(right)/float64(len(c.Gold)), c.Want["accuracy"]; !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("the diagonal of the confusion matrix has a fraction of %v, the accuracy is %v", got, want)
			}
		})
	}
	for _, c := range g.Many {
		t.Run("many labels: "+c.Name, func(t *testing.T) {
			gold, predicted := labelTargets(c.Gold...), labelPredictions(c.Predicted...)
			check(t, multiLabel{}.Tables(gold, predicted).Labels, "", c.Want)
		})
	}
	for _, c := range g.Spans {
		t.Run("spans: "+c.Name, func(t *testing.T) {
			gold, predicted := tagTargets(c.Gold...), tagPredictions(c.Predicted...)
			check(t, ner{}.Tables(gold, predicted).Labels, "span_", c.Want)
		})
	}
}
