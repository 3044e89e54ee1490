package report

import (
	"maps"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestMetricsOfTwoTasks(t *testing.T) {
	head := func(name string, weight, sum, units float64, metrics ...tasks.Metric) multitask.HeadMetrics {
		return multitask.HeadMetrics{Head: name, Metrics: metrics,
			Loss: multitask.Loss{Weight: weight, Sum: sum, Units: units}}
	}
	half := 0.5
	groups := []multitask.GroupMetrics{
		{AllRight: &half, Tasks: []multitask.TaskMetrics{{Task: "mood", Heads: []multitask.HeadMetrics{
			head("tone", 3, 8, 4, tasks.Metric{Name: "accuracy", Value: 0.25},
				tasks.Metric{Name: "f1_macro", Value: 0.75, F1: true},
				tasks.Metric{Name: "f1_micro", Value: 0.125}),
			head("side", 0.5, 6, 2),
			head("unlabelled", 1, 0, 0),
		}}}},
		{Tasks: []multitask.TaskMetrics{{Task: "spans", Heads: []multitask.HeadMetrics{
			head("spans", 1, 1, 2, tasks.Metric{Name: "span_f1", Value: 0.5, F1: true}),
			head("none", 1, 0, 0, tasks.Metric{Name: "span_f1", F1: true, Undefined: true}),
		}}}},
	}
	want := map[string]float64{
		"eval_mood_tone_accuracy":  0.25,
		"eval_mood_tone_f1_macro":  0.75,
		"eval_mood_tone_f1_micro":  0.125,
		"eval_spans_spans_span_f1": 0.5,
		"eval_mood_loss":           3*2 + 0.5*3,
		"eval_spans_loss":          0.5,
		"eval_loss":                (7.5 + 0.5) / 2,
		"eval_overall":             (0.25 + 0.5) / 2,
		"eval_overall_f1":          (0.75 + 0.5) / 2,
		"eval_all_right":           0.5,
	}
	if got := Metrics(groups); !maps.Equal(got, want) {
		t.Errorf("Metrics = %v, want %v", got, want)
	}

	// by weights of tasks: mood's main metric is 0.25, that of spans 0.5
	by := Selection{Metric: Weighted, Higher: true, Weights: map[string]float64{"mood": 3, "spans": 1}}
	if got, err := by.Value(groups); err != nil || got != (3*0.25+0.5)/4 {
		t.Errorf("the weighted mean is %v, %v", got, err)
	}
	by.Weights = map[string]float64{"other": 1}
	if _, err := by.Value(groups); err == nil {
		t.Error("weights of a task that is not evaluated are no error")
	}
}
