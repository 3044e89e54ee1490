package outputs_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// A threshold takes the place of the head's, a least probability bounds what holds.
func TestDecisionsOfLabels(t *testing.T) {
	set, nan := corpus.NewLabels([]string{"a", "b", "c"}), float32(math.NaN())
	probabilities := []float32{0.3, 0.6, 0.9}
	for _, test := range []struct {
		by        outputs.Decision
		one, many string // JSON of the label c, which is an answer, and of the labels b and c, which hold
	}{
		{outputs.Decision{}, `"c","probability":0.9`, `["b","c"]`},
		{outputs.Decision{MinProbability: 0.9001}, `"c","probability":0.9,"abstained":true`, `[]`},
		{outputs.Decision{MinProbability: 0.7}, `"c","probability":0.9`, `["c"]`},
		{outputs.Decision{Thresholds: []float32{0.3, 0.7, 0.95}}, `"c","probability":0.9,"abstained":true`, `["a"]`},
		{outputs.Decision{Thresholds: []float32{0, 0, 0}, MinProbability: 0.5}, `"c","probability":0.9`, `["b","c"]`},
		{outputs.Decision{Thresholds: []float32{0.2, nan, 1}}, `"c","probability":0.9,"abstained":true`, `["a","b"]`},
		{outputs.Decision{Thresholds: []float32{1, 1, nan}}, `"c","probability":0.9`, `["c"]`},
		{outputs.Decision{MinProbability: probabilities[2]}, `"c","probability":0.9`, `["c"]`},
	} {
		one := &outputs.LabelPrediction{ID: 2, Probabilities: probabilities, Label: "c"}
		many := &outputs.LabelsPrediction{IDs: []int{1, 2}, Probabilities: probabilities, Labels: []string{"b", "c"}}
		outputs.Label.Decide(one, test.by, set)
		outputs.Labels.Decide(many, test.by, set)
		got, err := json.Marshal(outputs.Label.JSON(one, outputs.Input{Labels: set}))
		if want := `{"label":` + test.one + `}`; err != nil || string(got) != want {
			t.Errorf("%+v: %s, %v, want %s", test.by, got, err, want)
		}
		if got, err := json.Marshal(many.Labels); err != nil || string(got) != test.many {
			t.Errorf("%+v: labels %s, %v, want %s", test.by, got, err, test.many)
		}
	}
	abstained := &outputs.LabelPrediction{Label: "c", Probabilities: probabilities, ID: 2, Abstained: true}
	if got := outputs.Label.Data(abstained, outputs.Input{}); got != "" {
		t.Errorf("data has %q for a label that is no answer, want nothing", got)
	}
	if outputs.Tags.Decides() || outputs.Number.Decides() || !outputs.Labels.Decides() {
		t.Error("tags or numbers are decided by the probabilities of labels, or labels are not")
	}
}

func TestSetsAreWrittenLikeliestFirst(t *testing.T) {
	labels := corpus.NewLabels([]string{"a", "b"})
	for want, set := range map[string][]int{
		`{"label":"a","probability":0.7,"set":["a","b"]}`: {0, 1},
		`{"label":"a","probability":0.7,"set":[]}`:        {},
		`{"label":"a","probability":0.7}`:                 nil,
	} {
		p := &outputs.LabelPrediction{Label: "a", Probabilities: []float32{0.7, 0.3}, Set: set}
		if got, err := json.Marshal(outputs.Label.JSON(p, outputs.Input{Labels: labels})); string(got) != want {
			t.Errorf("set %v: %s, %v, want %s", set, got, err, want)
		}
	}
}
