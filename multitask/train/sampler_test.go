package train

import (
	"testing"

	"github.com/jenga-nlp/jenga/multitask/samplers"
)

func TestAnEpochIsAllBatchesHoweverManyGroupsATurnHas(t *testing.T) {
	cases := []struct{ groups, accumulate, steps int }{{1, 1, 16}, {2, 1, 8}, {3, 1, 6}, {3, 2, 3}}
	for _, c := range cases { // of 8 batches, 2 epochs
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.Sampler, plan.Accumulate = inTurns("round_robin", c.groups), c.accumulate
		steps, evaluations := train(t, m, data, plan)
		if len(steps) != c.steps || steps[len(steps)-1].Epoch != 2 || len(evaluations) != 2 {
			t.Errorf("%d groups, %d accumulated: %d steps, %d evaluations, %v epochs; want %d, 2, 2",
				c.groups, c.accumulate, len(steps), len(evaluations), steps[len(steps)-1].Epoch, c.steps)
		}
	}
}

func TestStepsReportProbabilities(t *testing.T) {
	for _, name := range samplers.Registry().Names() {
		m, data := threeGroups(t, "none", 10)
		choice, err := samplers.Registry().FromString(name, "")
		if err != nil {
			t.Fatal(err)
		}
		plan := smallPlan()
		if plan.Sampler, err = choice.Build(samplers.EnvOf(m, false)); err != nil {
			t.Fatal(err)
		}
		steps, _ := train(t, m, data, plan)
		for _, step := range steps {
			if len(step.Sampling) != 3 || step.Sampling[1].Group != "tags" {
				t.Fatalf("%s: probabilities %v of three groups, of which tags is the second", name, step.Sampling)
			}
			if n := step.Sampling[1].Terms["examples"]; name == "temperature" && n != 7 {
				t.Fatalf("%s: %v examples of tags, want 7", name, n)
			}
		}
	}
}

func TestStepsOfOneGroupReportNoProbabilities(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	m.Groups = m.Groups[:1]
	steps, _ := train(t, m, data[:1], smallPlan())
	if steps[0].Sampling != nil {
		t.Errorf("probabilities %v of one group", steps[0].Sampling)
	}
}
