package train

import (
	"math"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
)

// The first step of SGD changes each weight by its rate times its gradient: the ratio of the change to that at one rate
// for all is the factor of the rate.
func TestRatesOfLayersAndHeads(t *testing.T) {
	change := func(layerDecay, headRate float64) map[string][]float32 {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.Optimizer, plan.WeightDecay, plan.MaxSteps = updates.Of("sgd", updates.SGD{}), 0, 1
		plan.Rate, plan.LayerDecay, plan.HeadRate = 0.5, layerDecay, headRate
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		before := values(m)
		advance(t, training)
		after := values(m)
		for name, v := range after {
			for i := range v {
				v[i] -= before[name][i]
			}
		}
		return after
	}
	plain, changed := change(0, 0), change(0.5, 2)
	levels := map[string]float64{
		"encoder.embeddings.": 0.25, "encoder.encoder.layer.0.": 0.5, "encoder.encoder.layer.1.": 1, "": 4,
	}
	seen := map[string]bool{}
	for name, v := range plain {
		level := ""
		for prefix := range levels {
			if strings.HasPrefix(name, prefix) && prefix != "" {
				level = prefix
			}
		}
		for i := range v {
			want := levels[level] * float64(v[i])
			if !(math.Abs(float64(changed[name][i])-want) <= 1e-6) {
				t.Fatalf("%s changes by %v at %d, want %v", name, changed[name][i], i, want)
			}
			seen[level] = seen[level] || math.Abs(float64(v[i])) > 1e-4
		}
	}
	if len(seen) != len(levels) || !seen[""] || !seen["encoder.embeddings."] || !seen["encoder.encoder.layer.0."] {
		t.Errorf("levels %v changed", seen)
	}
}

func TestLayerDecayOfAnEncoderWithoutLayersThatLearn(t *testing.T) {
	m, _ := threeGroups(t, "all", 10)
	err := Plan{Options: multitask.Options{LayerDecay: 0.5}}.CheckLayerDecay(m)
	if err == nil || !strings.Contains(err.Error(), "learns nothing") {
		t.Errorf("CheckLayerDecay = %v", err)
	}
	m = residentModel(t, 0)
	plan := smallPlan()
	plan.LayerDecay = 0.5
	_, err = New(m, smallData(m, 10), plan)
	if err == nil || !strings.Contains(err.Error(), "does not list its layers") {
		t.Errorf("New = %v", err)
	}
}
