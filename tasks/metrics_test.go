package tasks

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// goldens are metrics computed by scikit-learn, scipy and seqeval: scripts/fixtures/metrics.py.
type goldens struct {
	Labels []struct {
		Name            string
		Gold, Predicted []string
		Want            map[string]float64
	}
	Many []struct {
		Name            string
		Gold, Predicted [][]string
		Want            map[string]float64
	}
	Numbers []struct {
		Name            string
		Gold, Predicted []float64
		Want            map[string]float64
	}
	Anomalies []struct {
		Name            string
		Gold, Predicted []float64
		Want            map[string]float64
	}
	Spans []struct {
		Name            string
		Gold, Predicted [][]string
		Want            map[string]float64
		Spans           [][][3]any // of gold: label, start, end
	}
}

func readGoldens(t *testing.T) goldens {
	t.Helper()
	data, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldens
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	got := [5]int{len(g.Labels), len(g.Many), len(g.Numbers), len(g.Anomalies), len(g.Spans)}
	if want := [5]int{13, 6, 4, 4, 20}; got != want {
		t.Fatalf("%v goldens of labels, many labels, numbers, anomalies and spans, want %v", got, want)
	}
	return g
}

// compareMetrics checks that metrics have the names and values of want.
func compareMetrics(t *testing.T, metrics []Metric, want map[string]float64) {
	t.Helper()
	if len(metrics) != len(want) {
		t.Errorf("%d metrics, want %d", len(metrics), len(want))
	}
	for _, m := range metrics {
		// both sides sum about ten float64 fractions
		if w, ok := want[m.Name]; !ok || !(math.Abs(m.Value-w) <= 1e-14) {
			t.Errorf("%s = %v, want %v", m.Name, m.Value, w)
		}
	}
}

func TestLabelMetricsMatchScikitLearn(t *testing.T) {
	for _, c := range readGoldens(t).Labels {
		t.Run(c.Name, func(t *testing.T) { compareMetrics(t, judgeLabels(c.Gold, c.Predicted), c.Want) })
	}
}

func TestMultiLabelMetricsMatchScikitLearn(t *testing.T) {
	task := multiLabel{}
	for _, c := range readGoldens(t).Many {
		t.Run(c.Name, func(t *testing.T) {
			compareMetrics(t, task.Evaluate(labelTargets(c.Gold...), labelPredictions(c.Predicted...)), c.Want)
		})
	}
}

func TestNumberMetricsMatchScipy(t *testing.T) {
	for _, c := range readGoldens(t).Numbers {
		t.Run(c.Name, func(t *testing.T) {
			metrics := judgeNumbers(c.Gold, c.Predicted)
			if len(metrics) != len(c.Want) {
				t.Errorf("%d metrics, want %d", len(metrics), len(c.Want))
			}
			for _, m := range metrics {
				if w, ok := c.Want[m.Name]; !ok || !(math.Abs(m.Value-w) <= 1e-9) {
					t.Errorf("%s = %v, want %v", m.Name, m.Value, w)
				}
			}
		})
	}
}

func TestSpanMetricsMatchSeqeval(t *testing.T) {
	for _, c := range readGoldens(t).Spans {
		t.Run(c.Name, func(t *testing.T) {
			compareMetrics(t, append(judgeSpans(c.Gold, c.Predicted),
				schemeOf(c.Gold...).judgeStrictly(c.Gold, c.Predicted)...), c.Want)
			for i, tags := range c.Gold {
				var want []outputs.TagSpan
				for _, s := range c.Spans[i] {
					span := outputs.TagSpan{Label: s[0].(string), Start: int(s[1].(float64)), End: int(s[2].(float64))}
					want = append(want, span)
				}
				if got := spansOf(tags); !slices.Equal(got, want) {
					t.Errorf("spansOf(%q) = %v, want %v", tags, got, want)
				}
			}
		})
	}
}

func TestMetricsOfNothingAreZero(t *testing.T) {
	for _, metrics := range [][]Metric{judgeLabels(nil, nil), judgeSpans(nil, nil)} {
		for _, m := range metrics {
			if m.Value != 0 {
				t.Errorf("%s of nothing = %v, want 0", m.Name, m.Value)
			}
		}
	}
}

func TestWordsWithoutGoldTagDoNotCount(t *testing.T) {
	gold := [][]string{{"B-a", "", "I-a", "O"}}
	predicted := [][]string{{"B-a", "B-b", "I-a", "O"}}
	for _, m := range judgeSpans(gold, predicted) {
		if m.Value != 1 {
			t.Errorf("%s = %v, want 1: the only wrong tag is on a word without a gold tag", m.Name, m.Value)
		}
	}
}

// Which metrics are undefined depends on the targets alone: those of models stay comparable.
func TestMetricsThatTargetsLeaveUndefined(t *testing.T) {
	number := func(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }
	tags := func(tags ...string) corpus.Target { return &outputs.TagsTarget{Tags: tags} }
	span := func(answers ...corpus.TextSpan) corpus.Target { return &outputs.SpanTarget{Answers: answers} }
	labels := func(labels ...string) corpus.Target { return &outputs.LabelsTarget{Labels: labels} }
	normal, odd := &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}
	there := corpus.TextSpan{Text: "two"}
	allNames := "accuracy precision_macro recall_macro f1_macro precision_micro recall_micro f1_micro " +
		"precision_weighted recall_weighted f1_weighted mcc"
	for _, test := range []struct {
		name string
		task Task
		gold []corpus.Target
		want string // names of metrics
	}{
		{"different numbers", regression{}, []corpus.Target{number(1), number(2)}, ""},
		{"equal numbers", regression{}, []corpus.Target{number(0.1), number(0.1), number(0.1)}, "pearson spearman"},
		{"one number", similarity{}, []corpus.Target{number(1)}, "pearson spearman"},
		{"normal texts and anomalies", anomaly{}, []corpus.Target{normal, odd}, ""},
		{"normal texts", anomaly{}, []corpus.Target{normal}, "auroc average_precision recall"},
		{"anomalies", anomaly{}, []corpus.Target{odd}, "auroc specificity"},
		{"questions of both kinds", questionAnswering{}, []corpus.Target{span(there), span()}, ""},
		{"no question without an answer", questionAnswering{}, []corpus.Target{span(there)}, "exact_match_unanswered"},
		{"no question with one", questionAnswering{}, []corpus.Target{span()}, "f1_answered exact_match_answered"},
		{"a label", multiLabel{}, []corpus.Target{labels(), labels("a")}, ""},
		{"no label", multiLabel{}, []corpus.Target{labels(), labels()}, "f1_micro precision_micro recall_micro " +
			"f1_macro precision_macro recall_macro f1_weighted precision_weighted recall_weighted f1_samples"},
		{"a span", ner{}, []corpus.Target{tags("O"), tags("B-x", "O")}, ""},
		{"no span", ner{}, []corpus.Target{tags("O", "")}, "span_f1 span_precision span_recall span_f1_macro " +
			"span_precision_macro span_recall_macro span_f1_weighted span_precision_weighted span_recall_weighted " +
			"span_f1_strict span_precision_strict span_recall_strict"},
		{"a tag", tagging{}, []corpus.Target{tags("", "X")}, ""},
		{"no tag", tagging{}, []corpus.Target{tags("")}, allNames},
		{"one label only", classification{}, []corpus.Target{&outputs.LabelTarget{Label: "a"}}, ""},
	} {
		metrics := test.task.Evaluate(nil, nil)
		MarkUndefined(test.task, test.gold, metrics)
		var got []string
		for _, m := range metrics {
			if m.Undefined {
				got = append(got, m.Name)
			}
		}
		if want := strings.Fields(test.want); !slices.Equal(got, want) {
			t.Errorf("%s: undefined are %q, want %q", test.name, got, want)
		}
	}
}

func TestUndefinedMetricsOfALabelAreNull(t *testing.T) {
	for want, m := range map[string]LabelMetrics{
		`{"precision":0.5,"recall":1,"f1":0.75,"support":1,"predicted":2}`: {0.5, 1, 0.75, 1, 2},
		`{"precision":null,"recall":0,"f1":0,"support":1,"predicted":0}`:   {Support: 1},
		`{"precision":0,"recall":null,"f1":0,"support":0,"predicted":3}`:   {Predicted: 3},
	} {
		got, err := json.Marshal(m)
		if err != nil || string(got) != want {
			t.Errorf("%+v is %s, %v, want %s", m, got, err, want)
		}
		var again LabelMetrics
		if err := json.Unmarshal(got, &again); err != nil || again != m {
			t.Errorf("read back: %+v, %v, want %+v", again, err, m)
		}
	}
}

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
			classification{}.tables(singleLabelTargets("a", "a", "a", "b", "b", "c", "d"),
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
			tagging{}.tables(
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
			ner{}.tables(
				tagTargets([]string{"B-x", "I-x", "O", "B-y"}, []string{"B-x", "O", "", "B-y"}),
				tagPredictions([]string{"B-x", "I-x", "O", "B-x"}, []string{"B-x", "I-x", "B-y", "B-y"})),
			Tables{Labels: map[string]LabelMetrics{
				"x": {Precision: 1. / 3, Recall: 0.5, F1: 0.4, Support: 2, Predicted: 3},
				"y": {Precision: 1, Recall: 0.5, F1: 2. / 3, Support: 2, Predicted: 1},
			}},
		},
		{
			"many labels: no confusion matrix",
			multiLabel{}.tables(
				labelTargets([]string{"a", "b"}, []string{}, []string{"a"}),
				labelPredictions([]string{"a"}, []string{"b"}, []string{"a", "c"})),
			Tables{Labels: map[string]LabelMetrics{"a": {Precision: 1, Recall: 1, F1: 1, Support: 2, Predicted: 2},
				"b": {Support: 1, Predicted: 1}, "c": {Predicted: 1}}},
		},
		{"no examples", classification{}.tables(nil, nil),
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
			tables := classification{}.tables(singleLabelTargets(c.Gold...), singleLabelPredictions(c.Predicted...))
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
			check(t, multiLabel{}.tables(gold, predicted).Labels, "", c.Want)
		})
	}
	for _, c := range g.Spans {
		t.Run("spans: "+c.Name, func(t *testing.T) {
			gold, predicted := tagTargets(c.Gold...), tagPredictions(c.Predicted...)
			check(t, ner{}.tables(gold, predicted).Labels, "span_", c.Want)
		})
	}
}
