package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// unfrozen starts a training of two epochs whose layers are unfrozen one by one.
func unfrozen(t *testing.T, freeze string, every float64) *Training {
	t.Helper()
	m, data := threeGroups(t, freeze, 10)
	plan := smallPlan()
	plan.Epochs, plan.UnfreezeEvery, plan.Schedule.Curve = 2, every, nn.ConstantCurve{}
	training, err := New(m, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	return training
}

// changed returns the prefixes of parameters that differ.
func changed(before, after map[string][]float32) []string {
	var all []string
	for name := range after {
		prefix := "heads"
		for _, level := range []string{"encoder.embeddings", "encoder.encoder.layer.0", "encoder.encoder.layer.1"} {
			if strings.HasPrefix(name, level+".") {
				prefix = level
			} else if strings.HasPrefix(name, "fusion.") {
				prefix = "fusion"
			}
		}
		if !slices.Equal(before[name], after[name]) && !slices.Contains(all, prefix) {
			all = append(all, prefix)
		}
	}
	slices.Sort(all)
	return all
}

func TestLayersLearnFromTheLastOneDown(t *testing.T) {
	for _, c := range []struct {
		freeze string
		every  float64
		learn  []string // the encoder's levels by the epochs done, over every
	}{
		{"none", 0.5, []string{"encoder.encoder.layer.1", "encoder.encoder.layer.0", "encoder.embeddings"}},
		{"embeddings", 0.75, []string{"encoder.encoder.layer.1", "encoder.encoder.layer.0"}},
		{"1", 1, []string{"encoder.encoder.layer.1"}},
	} {
		training := unfrozen(t, c.freeze, c.every)
		for !training.Done() {
			epochs, before := training.epoch(), values(training.model.Model)
			if _, evaluated := advance(t, training).(Evaluation); evaluated {
				continue
			}
			open := min(len(c.learn), int(epochs/c.every))
			want := slices.Concat([]string{"fusion", "heads"}, c.learn[:open])
			slices.Sort(want)
			if got := changed(before, values(training.model.Model)); !slices.Equal(got, want) {
				t.Errorf("freeze %s, every %v: after %v epochs %q learn, want %q", c.freeze, c.every, epochs, got, want)
			}
		}
	}
}

// Heads on an encoder that does not learn yet have the bytes of those on a frozen one.
func TestAnEncoderThatLearnsLaterIsFrozen(t *testing.T) {
	_, frozen := toEnd(t, start(t, "all"))
	_, later := toEnd(t, unfrozen(t, "none", 10))
	if got := changed(frozen, later); len(got) > 0 {
		t.Errorf("%q differ", got)
	}
}

func start(t *testing.T, freeze string) *Training {
	t.Helper()
	m, data := threeGroups(t, freeze, 10)
	plan := smallPlan()
	plan.Epochs, plan.CacheMemory, plan.Schedule.Curve = 2, mixed, nn.ConstantCurve{}
	training, err := New(m, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	return training
}

func TestUnfreezingThatCannotBe(t *testing.T) {
	plan := smallPlan()
	plan.UnfreezeEvery, plan.MaxSteps = 1, 5
	frozen, _ := threeGroups(t, "all", 10)
	m, _ := threeGroups(t, "none", 10)
	for want, m := range map[string]*multitask.Model{
		"learns nothing": frozen, "does not list its layers": residentModel(t, 0), "there is none": m,
	} {
		if _, err := New(m, nil, plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %s", err, want)
		}
	}
}

func TestLayersThatNeverLearnAreNamed(t *testing.T) {
	for every, want := range map[float64]string{
		0.5: "", 0.7: "too early for 1 layer of the encoder", 1: "too early for 2 layers", 2: "too early for 3 layers",
	} {
		warnings := unfrozen(t, "none", every).Warnings()
		if want == "" && len(warnings) > 0 ||
			want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Text, want)) {
			t.Errorf("every %v: warnings %q, want %q", every, warnings, want)
		}
	}
}
