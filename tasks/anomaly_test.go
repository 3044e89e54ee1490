package tasks

import (
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestAnomaliesAreJudgedAsByScikitLearn(t *testing.T) {
	task := anomaly{}
	for _, c := range readGoldens(t).Anomalies {
		t.Run(c.Name, func(t *testing.T) {
			gold, predicted := make([]corpus.Target, len(c.Gold)), make([]corpus.Prediction, len(c.Gold))
			for i := range gold {
				gold[i] = &outputs.AnomalyTarget{Anomalous: c.Gold[i] != 0}
				predicted[i] = &outputs.AnomalyPrediction{Distance: c.Predicted[i]}
			}
			for _, m := range task.Evaluate(gold, predicted)[:2] {
				if !(math.Abs(m.Value-c.Want[m.Name]) <= 1e-12) {
					t.Errorf("%s = %v, want %v", m.Name, m.Value, c.Want[m.Name])
				}
			}
		})
	}
}

func TestAlarmsAreCounted(t *testing.T) {
	normal, odd := &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}
	yes, no := true, false
	alarm, silent := &outputs.AnomalyPrediction{Alarm: &yes}, &outputs.AnomalyPrediction{Alarm: &no}
	gold := []corpus.Target{normal, normal, normal, normal, odd, odd}
	predicted := []corpus.Prediction{silent, alarm, silent, &outputs.AnomalyPrediction{}, alarm, silent}
	metrics := anomaly{}.Evaluate(gold, predicted)
	if m := metrics[2]; m.Name != "recall" || m.Value != 0.5 {
		t.Errorf("%+v, want half of the anomalies", m)
	}
	if m := metrics[3]; m.Name != "specificity" || m.Value != 0.75 {
		t.Errorf("%+v, want three quarters of the normal texts", m)
	}
	for _, m := range (anomaly{}).Evaluate(gold[:4], predicted[:4])[:3] {
		if m.Value != 0 {
			t.Errorf("%s = %v without an anomaly", m.Name, m.Value)
		}
	}
}

func anomalous(t corpus.Target) bool { return outputs.As[outputs.AnomalyTarget](t).Anomalous }

func TestOneLabelIsNormal(t *testing.T) {
	made, err := NewAnomaly(AnomalyOptions{Normal: "ok"}, Env{Heads: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	example := func(fields map[string]any) []corpus.Target {
		t.Helper()
		e, err := made.Example(corpus.Record{Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		return e.Targets
	}
	if got := example(map[string]any{"text": "x", "label": "ok"}); anomalous(got[0]) || anomalous(got[1]) {
		t.Error("a normal text is none")
	}
	odd := example(map[string]any{"text": "x", "label": "odd", "label.b": "ok"})
	if !anomalous(odd[0]) || anomalous(odd[1]) {
		t.Error("an anomaly is none, or a head's own label does not count")
	}
	if got := example(map[string]any{"text": "x"}); got[0] != nil {
		t.Error("a text without a label is labelled")
	}
	if _, err := NewAnomaly(AnomalyOptions{}, Env{}); err == nil {
		t.Error("no label is normal, yet there is a task")
	}
}

func TestHiddenTokensAreJudgedByTheFirstGuess(t *testing.T) {
	guess := func(ids ...int32) (g outputs.HiddenToken) {
		for _, id := range ids {
			g.Guesses = append(g.Guesses, outputs.Guess{ID: id})
		}
		return g
	}
	gold := []corpus.Target{
		&outputs.HiddenTarget{IDs: []int32{5, 6}},
		&outputs.HiddenTarget{IDs: []int32{}},
		&outputs.HiddenTarget{IDs: []int32{7, 8}},
	}
	predicted := outputs.Erase([]outputs.HiddenPrediction{
		{Tokens: []outputs.HiddenToken{guess(5, 1), guess(1, 6)}},
		{},
		{Tokens: []outputs.HiddenToken{guess(7), guess(9)}},
	})
	if m := (mlm{}).Evaluate(gold, predicted)[0]; m.Name != "accuracy" || m.Value != 0.5 {
		t.Errorf("%+v, want 2 of 4", m)
	}
}
