package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestAWarningIsALine(t *testing.T) {
	got, err := json.Marshal(Line(train.Warning{Text: "the disk is full"}))
	if want := `{"event":"warning","warning":"the disk is full"}`; err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}

func TestAnUndefinedMetricIsNull(t *testing.T) {
	got, err := json.Marshal(report.EvalLineOf("dev", []multitask.GroupMetrics{{Tasks: []multitask.TaskMetrics{{
		Task: "price", Heads: []multitask.HeadMetrics{{Head: "price",
			Metrics: []tasks.Metric{{Name: "pearson", Undefined: true}, {Name: "rmse", Value: 0, Lower: true}}}}}}}}))
	const want = `{"split":"dev","tasks":{"price":{"heads":{"price":{"pearson":null,"rmse":0}}}}}`
	if err != nil || string(got) != want {
		t.Errorf("line %s, %v, want %s", got, err, want)
	}
}

func TestAnEvaluationHasItsOverallMetrics(t *testing.T) {
	right := 0.25
	line := report.EvalLineOf("dev", []multitask.GroupMetrics{{AllRight: &right, Tasks: []multitask.TaskMetrics{
		{Task: "a", Heads: []multitask.HeadMetrics{{Head: "a",
			Metrics: []tasks.Metric{{Name: "accuracy", Value: 0.5}, {Name: "f1_macro", Value: 0.75, F1: true}}}}},
		{Task: "b", Heads: []multitask.HeadMetrics{{Head: "b", Metrics: []tasks.Metric{{Name: "pearson", Value: 1}}}}},
	}}})
	want := map[string]float64{report.Overall: 0.75, report.OverallF1: 0.75, report.AllRight: 0.25}
	if !maps.Equal(line.Overall, want) {
		t.Errorf("overall metrics are %v, want %v", line.Overall, want)
	}
}

func TestTheLastLineSaysHowATrainingEnded(t *testing.T) {
	reached := Done{Step: 7, Of: 80, Folder: "run"}
	evaluated := reached
	evaluated.Best.Step = 4
	saved := reached
	saved.Resume = "last"
	best, err := json.Marshal(filepath.Join("run", "best"))
	if err != nil {
		t.Fatal(err)
	}
	stopped := fmt.Errorf("stopped: %w", context.Canceled)
	for _, test := range []struct {
		event Ended
		want  string
	}{
		{Ended{evaluated, stopped}, `{"event":"interrupted","step":7,"of":80,"checkpoint":` + string(best) + `}`},
		{Ended{reached, stopped}, `{"event":"interrupted","step":7,"of":80,"checkpoint":null}`},
		{Ended{saved, stopped}, `{"event":"interrupted","step":7,"of":80,"checkpoint":"last","resume":"last"}`},
		{Ended{reached, errors.New("no space")}, `{"event":"error","step":7,"of":80,"error":"no space"}`},
		{Ended{Done{}, errors.New("no such file")}, `{"event":"error","error":"no such file"}`},
	} {
		if got, err := json.Marshal(Line(test.event)); err != nil || string(got) != test.want {
			t.Errorf("Line = %s, %v, want %s", got, err, test.want)
		}
	}
}
