package tasks_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func newRegression(t *testing.T, limit ...float64) tasks.Task {
	t.Helper()
	task, err := tasks.NewRegression(tasks.RegressionOptions{Range: limit}, tasks.Env{Heads: []string{"amount"}})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// numberTargets returns a target for each value.
func numberTargets(values ...float64) (gold []corpus.Target) {
	for _, v := range values {
		gold = append(gold, &outputs.NumberTarget{Value: v})
	}
	return gold
}

// numberPredictions returns a prediction for each value.
func numberPredictions(values ...float64) (predicted []corpus.Prediction) {
	for _, v := range values {
		predicted = append(predicted, &outputs.NumberPrediction{Value: v})
	}
	return predicted
}

func TestNumberTargets(t *testing.T) {
	for _, fields := range []map[string]any{
		{"value": json.Number("2.5")}, {"label": "2.5"}, {"value.amount": "2.5", "value": "7"},
		{"score": json.Number("25e-1")},
	} {
		fields["text"] = "a"
		e, err := newRegression(t).Example(record(fields))
		if err != nil || *outputs.As[outputs.NumberTarget](e.Targets[0]) != (outputs.NumberTarget{Value: 2.5}) {
			t.Errorf("%v: %+v, %v", fields, e.Targets, err)
		}
	}
	e, err := newRegression(t).Example(record(map[string]any{"text": "a", "value": nil}))
	if err != nil || e.Targets[0] != nil {
		t.Errorf("null: %+v, %v", e.Targets, err)
	}
}

func TestEmptyRangeHasNoLimits(t *testing.T) {
	task, err := tasks.NewRegression(tasks.RegressionOptions{Range: []float64{}}, tasks.Env{Heads: []string{"amount"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Example(record(map[string]any{"text": "a", "value": "7"})); err != nil {
		t.Error(err)
	}
}

func TestInvalidNumbers(t *testing.T) {
	for value, want := range map[string]string{
		"many":  `data.jsonl:7: field "value" is "many"; want a number`,
		"NaN":   `data.jsonl:7: field "value" is "NaN"; want a number`,
		"1_0":   `data.jsonl:7: field "value" is "1_0"; want a number`,
		"0x1p4": `data.jsonl:7: field "value" is "0x1p4"; want a number`,
		"0x10":  `data.jsonl:7: field "value" is "0x10"; want a number`,
		"1e":    `data.jsonl:7: field "value" is "1e"; want a number`,
		"１２":    `data.jsonl:7: field "value" is "１２"; want a number`,
		"-inf":  `data.jsonl:7: field "value" is "-inf"; want a number`,
		"5.5":   `data.jsonl:7: field "value" is 5.5; range is 0 to 5`,
	} {
		_, err := newRegression(t, 0, 5).Example(record(map[string]any{"text": "a", "value": value}))
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", value, err, want)
		}
	}
	for _, limit := range [][]float64{{1}, {2, 1}, {1, 1}, {0, 1, 2}} {
		_, err := tasks.NewRegression(tasks.RegressionOptions{Range: limit}, tasks.Env{})
		if err == nil || !strings.Contains(err.Error(), "want [LEAST, MOST]") {
			t.Errorf("range %v: error %v", limit, err)
		}
	}
}

func TestConstantNumbersHaveNoCorrelation(t *testing.T) {
	tenth := 0.1 // the mean of three is rounded to another number
	gold, predicted := numberTargets(tenth, tenth, tenth), numberPredictions(0.7, 0.7, 0.7)
	for _, m := range newRegression(t).Evaluate(gold, predicted)[:2] {
		if m.Value != 0 {
			t.Errorf("%s = %v, want 0", m.Name, m.Value)
		}
	}
	for _, m := range newRegression(t).Evaluate(numberTargets(1, 1), numberPredictions(1, 3)) {
		want := map[string]float64{"pearson": 0, "spearman": 0, "rmse": math.Sqrt2, "mae": 1}[m.Name]
		if !(math.Abs(m.Value-want) <= 1e-12) {
			t.Errorf("%s = %v, want %v", m.Name, m.Value, want)
		}
	}
}
