package train

import (
	"context"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
)

// patternModel is a small model with a task that learns, and one that is fitted to attention. Each fourth text is an
// anomaly.
func patternModel(t *testing.T, freeze string) (*multitask.Model, []multitask.Data) {
	m := smallModel(t, freeze, 0)
	m.Groups = m.Groups[1:]
	data := smallData(m, 16)
	maps := heads.Attention(m.Encoder.Describe().Attention)
	addTask(t, m, "anomaly", "attention_pattern", heads.Env{Attention: maps})
	texts := smallData(m, 16)[1].Train
	for i, e := range texts {
		e.Targets = []corpus.Target{&outputs.AnomalyTarget{Anomalous: i%4 == 0}}
	}
	return m, append(data, multitask.Data{Train: texts, Dev: texts})
}

func TestHeadsAreFittedBeforeEachEvaluation(t *testing.T) {
	for _, freeze := range []string{"none", "all"} {
		m, data := patternModel(t, freeze)
		plan := smallPlan()
		plan.CacheMemory = 1 << 20
		var means [][]float32
		err := trainOn(context.Background(), m, data, plan, func(event Event) error {
			if evaluation, ok := event.(Evaluation); ok {
				means = append(means, mean(m))
				if metrics := evaluation.Groups[1].Tasks[0].Heads[0].Metrics; metrics[0].Name != "auroc" ||
					metrics[3].Name != "specificity" || metrics[3].Value < 0.9 {
					t.Errorf("metrics %+v", metrics)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		moved := !slices.Equal(means[0], means[1])
		if isZero(means[0]) || moved != (freeze == "none") {
			t.Errorf("freeze: %s: fitted to %v, then to %v", freeze, means[0][:3], means[1][:3])
		}
	}
}

func TestWithoutEvaluationsHeadsAreFittedAtTheEnd(t *testing.T) {
	m, data := patternModel(t, "none")
	plan := smallPlan()
	plan.NeverEvaluate = true
	train(t, m, data, plan)
	if isZero(mean(m)) {
		t.Error("the head was not fitted")
	}
}

func TestTheBatchSizeChangesNoFit(t *testing.T) {
	var means [][]float32
	for _, size := range []int{2, 5} {
		m, data := patternModel(t, "all")
		plan := smallPlan()
		plan.BatchSize = size
		group := &m.Groups[0]
		err := multitask.Cached{Model: m}.FitHeads(context.Background(), group, data[0].Train, plan.BatchSize,
			plan.BatchTokens)
		if err != nil {
			t.Fatal(err)
		}
		means = append(means, mean(m))
	}
	if !slices.Equal(means[0], means[1]) {
		t.Error("another batch size, another fit")
	}
}

// mean copies the mean that the head was fitted to.
func mean(m *multitask.Model) []float32 {
	for _, w := range m.Params.In("heads").In("anomaly").All() {
		if w.Name == "heads.anomaly.anomaly.mean" {
			return slices.Clone(w.Data)
		}
	}
	return nil
}

func isZero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}
