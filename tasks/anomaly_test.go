package tasks

import (
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestAnomalyMetricsMatchScikitLearn(t *testing.T) {
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

func TestAlarmMetrics(t *testing.T) {
	normal, unusual := &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}
	yes, no := true, false
	alarm, silent := &outputs.AnomalyPrediction{Alarm: &yes}, &outputs.AnomalyPrediction{Alarm: &no}
	gold := []corpus.Target{normal, normal, normal, normal, unusual, unusual}
	predicted := []corpus.Prediction{silent, alarm, silent, &outputs.AnomalyPrediction{}, alarm, silent}
	metrics := anomaly{}.Evaluate(gold, predicted)
	if m := metrics[2]; m.Name != "recall" || m.Value != 0.5 {
		t.Errorf("third metric %+v, want recall 0.5: an alarm for one of two anomalies", m)
	}
	if m := metrics[3]; m.Name != "specificity" || m.Value != 0.75 {
		t.Errorf("fourth metric %+v, want specificity 0.75: no alarm for three of four normal texts", m)
	}
	for _, m := range (anomaly{}).Evaluate(gold[:4], predicted[:4])[:3] {
		if m.Value != 0 {
			t.Errorf("%s without an anomaly = %v, want 0", m.Name, m.Value)
		}
	}
}

// anomalous reports whether a target is an anomaly.
func anomalous(t corpus.Target) bool { return outputs.As[outputs.AnomalyTarget](t).Anomalous }

func TestAnomalyTargets(t *testing.T) {
	task, err := NewAnomaly(AnomalyOptions{Normal: "ok"}, Env{Heads: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	targets := func(fields map[string]any) []corpus.Target {
		t.Helper()
		e, err := task.Example(corpus.Record{Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		return e.Targets
	}
	if got := targets(map[string]any{"text": "x", "label": "ok"}); anomalous(got[0]) || anomalous(got[1]) {
		t.Error("label ok is anomalous, want normal")
	}
	got := targets(map[string]any{"text": "x", "label": "odd", "label.b": "ok"})
	if !anomalous(got[0]) || anomalous(got[1]) {
		t.Error("label odd with label.b ok: want an anomaly for head a, a normal text for head b")
	}
	if got := targets(map[string]any{"text": "x"}); got[0] != nil {
		t.Error("a text without a label has a target")
	}
	if _, err := NewAnomaly(AnomalyOptions{}, Env{}); err == nil {
		t.Error("NewAnomaly without a normal label succeeds, want an error")
	}
}

func TestMLMAccuracyIsOfFirstGuesses(t *testing.T) {
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
		t.Errorf("first metric %+v, want accuracy 0.5: the first guess is right for 2 of 4 tokens", m)
	}
}
