package train

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
)

func TestSamplersNameSeveralGroupsAtOnce(t *testing.T) {
	batches := []int{6, 2, 1}
	for name, s := range map[string]interface {
		samplers.Sampler
		samplers.MultiSampler
	}{
		"proportional": samplers.Proportional{Several: samplers.Several{K: 2}},
		"uniform":      samplers.Uniform{Several: samplers.Several{K: 2}},
		"round_robin":  samplers.RoundRobin{Several: samplers.Several{K: 2}},
	} {
		state := multitask.State{Batches: batches, Left: slices.Clone(batches), Last: -1,
			Rand: rand.New(rand.NewPCG(1, 1))}
		for turn := range 4 {
			chosen := s.Next(state)
			if len(chosen) != 2 || s.Groups() != 2 || chosen[0] == chosen[1] {
				t.Fatalf("%s: turn %d names groups %v, want two different ones", name, turn+1, chosen)
			}
			for _, g := range chosen {
				state.Left[g]--
				state.Last = g
			}
		}
		if name == "round_robin" && !slices.Equal(state.Left, []int{2, -1, 0}) {
			t.Errorf("round_robin leaves %v batches; want 2, -1 and 0: a group begins again to fill a turn", state.Left)
		}
	}
	all := samplers.Uniform{Several: samplers.Several{K: 5}}
	if chosen := all.Next(multitask.State{Batches: batches, Left: batches, Rand: rand.New(rand.NewPCG(1,
		1))}); len(chosen) != 3 {
		t.Errorf("of three groups %v are named, want all", chosen)
	}
}

func TestAnEpochIsAllBatchesHoweverManyGroupsATurnHas(t *testing.T) {
	cases := []struct{ groups, accumulate, steps int }{{1, 1, 16}, {2, 1, 8}, {3, 1, 6}, {3, 2, 3}}
	for _, c := range cases { // of 8 batches, 2 epochs
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.Sampler, plan.Accumulate = samplers.RoundRobin{Several: samplers.Several{K: c.groups}}, c.accumulate
		steps, evaluations := train(t, m, data, plan)
		if len(steps) != c.steps || steps[len(steps)-1].Epoch != 2 || len(evaluations) != 2 {
			t.Errorf("%d groups, %d accumulated: %d steps, %d evaluations, %v epochs; want %d, 2, 2",
				c.groups, c.accumulate, len(steps), len(evaluations), steps[len(steps)-1].Epoch, c.steps)
		}
	}
}

func TestGroupsOfASampler(t *testing.T) {
	env := samplers.Env{Groups: []string{"a", "b", "c"}}
	everyGroup := env
	everyGroup.All = true
	for _, c := range []struct {
		options string
		env     samplers.Env
		want    int
		wrong   string
	}{
		{"", env, 1, ""},
		{"", everyGroup, 3, ""},
		{"groups: 2", everyGroup, 2, ""},
		{"groups: all", env, 3, ""},
		{"groups: 4", env, 0,
			"groups: the experiment has 3 groups of tasks, but groups is 4; want at most as many, or all"},
		{"groups: 0", env, 0, `groups: want a whole number of at least 1, or all, have "0"`},
		{"groups: some", env, 0, `groups: want a whole number of at least 1, or all, have "some"`},
	} {
		for _, name := range samplers.Registry().Names() {
			choice, err := samplers.Registry().FromString(name, c.options)
			if err != nil {
				t.Fatal(err)
			}
			s, err := choice.Build(c.env)
			switch {
			case c.wrong != "":
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%s, %q: %v, want %s", name, c.options, err, c.wrong)
				}
			case err != nil:
				t.Errorf("%s, %q: %v", name, c.options, err)
			case s.(samplers.MultiSampler).Groups() != c.want:
				t.Errorf("%s, %q: %d groups, want %d", name, c.options, s.(samplers.MultiSampler).Groups(), c.want)
			}
		}
	}
}
