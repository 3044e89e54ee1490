package tasks

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

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
