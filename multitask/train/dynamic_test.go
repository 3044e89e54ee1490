package train

import (
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/samplers"
)

func TestDynamicFollowsEvaluations(t *testing.T) {
	d := mustSampler(t, "dynamic", "{targets: {ner: 0.8}, rehearsal: 0.1, temperature: 1}").(samplers.Dynamic)
	terms := func() [4]map[string]float64 {
		var all [4]map[string]float64
		for g, p := range d.Probabilities(fourGroups()) {
			all[g] = p.Terms
		}
		return all
	}

	// before an evaluation
	if got := terms()[1]; len(got) != 1 || !(math.Abs(got["base"]-10_000/102_900.0) <= 1e-12) {
		t.Errorf("before an evaluation the terms are %v, want a base of 10000/102900 alone", got)
	}

	// the best figures are those of different evaluations; a group's are means over its tasks
	d.ObserveEvaluation(evaluated(0.7, 0.9, 0.5, 0.6, 0.5))
	d.ObserveEvaluation(evaluated(0.8, 0.6, 0.4, 0.9, 0.5))
	for g, want := range []map[string]float64{
		{"gap": 0.15, "figure": 0.7, "reference": 0.85},
		{"gap": 0.1, "figure": 0.4, "reference": 0.5},
		{"gap": 0, "figure": 0.9, "reference": 0.8},
		{"gap": 0, "figure": 0.5, "reference": 0.5},
	} {
		got := terms()[g]
		for term, v := range want {
			if !(math.Abs(got[term]-v) <= 1e-12) {
				t.Errorf("group %d: %s is %v, want %v", g, term, got[term], v)
			}
		}
	}

	// a task without metrics in an evaluation keeps its figures
	e := evaluated(0.8, 0.6, 0.4, 0.9, 0.5)
	e[1].Tasks[0].Heads[0].Metrics = nil
	before := terms()
	d.ObserveEvaluation(e)
	if got := terms()[1]["figure"]; got != before[1]["figure"] {
		t.Errorf("without metrics the figure is %v, want %v", got, before[1]["figure"])
	}

	// a state that is none
	for _, state := range []string{"", "{", "[]", `{"Last": null}`} {
		if err := d.UnmarshalBinary([]byte(state)); err == nil {
			t.Errorf("state %q is accepted", state)
		}
	}
}
