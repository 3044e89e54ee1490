package train

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/samplers"
)

func TestAnEpochHasTheBatchesOfAllGroups(t *testing.T) {
	if got := (Plan{Sampler: inTurns("uniform", 1)}).perEpoch([]int{10, 2, 30, 6}); got != 48 {
		t.Errorf("without rehearsal: %d batches, want 48", got)
	}
}

func TestATrainingRehearses(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	plan := smallPlan()
	plan.Epochs = 2
	plan.Sampler = samplers.NewRehearsal(inTurns("proportional", 1), []string{"a", "b", "c"}, []bool{false, true,
		true}, 0.5)
	training, err := New(m, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	var groups []int
	for !training.Done() {
		if training.Due() {
			if _, err := training.Evaluate(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := training.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		groups = append(groups, training.state.Last)
	}
	if !slices.Contains(groups, 0) || !slices.Contains(groups, 1) && !slices.Contains(groups, 2) {
		t.Errorf("drew %v", groups)
	}
	if want := 2 * 2 * training.state.Batches[0]; len(groups) != want { // 2 epochs, half of whose batches are its own
		t.Errorf("%d updates, want %d", len(groups), want)
	}
}
