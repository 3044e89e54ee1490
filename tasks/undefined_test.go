package tasks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// Which metrics are undefined depends on the targets alone: those of models stay comparable.
func TestMetricsThatTargetsLeaveUndefined(t *testing.T) {
	number := func(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }
	tags := func(tags ...string) corpus.Target { return &outputs.TagsTarget{Tags: tags} }
	span := func(answers ...corpus.TextSpan) corpus.Target { return &outputs.SpanTarget{Answers: answers} }
	labels := func(labels ...string) corpus.Target { return &outputs.LabelsTarget{Labels: labels} }
	normal, odd := &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}
	there := corpus.TextSpan{Text: "two"}
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
		{"no tag", tagging{}, []corpus.Target{tags("")}, strings.Join(namesOf(judgeLabels(nil, nil)), " ")},
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
