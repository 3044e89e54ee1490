package serve

import (
	"encoding/json"
	"testing"

	"github.com/jenga-nlp/jenga/outputs"
)

// A request's least probability marks a label as no answer, and leaves it and its probability in the answer.
func TestImprobableAnswersAreMarked(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	for body, want := range map[string]bool{
		`{"text": "the card"}`:                                                       false,
		`{"text": "the card", "min_probability": 1}`:                                 true,
		`{"text": "the card", "min_probability": {"team": 1}}`:                       true,
		`{"text": "the card", "min_probability": {"team.team": 0}, "top": 2}`:        false,
		`{"text": "the card", "thresholds": {"team": 1}}`:                            true,
		`{"text": "the card", "thresholds": {"team": 0}, "min_probability": 1}`:      true,
		`{"text": "the card", "thresholds": {"team.team": 0}, "min_probability": 0}`: false,
	} {
		got := post[predicted](t, s, "/v1/predict", body)
		var p struct {
			Tasks map[string]map[string]outputs.LabelJSON
		}
		if err := json.Unmarshal(got.Predictions[0], &p); err != nil {
			t.Fatal(err)
		}
		label := p.Tasks["team"]["team"]
		if label.Abstained != want || label.Label == "" || !(label.Probability > 0 && label.Probability < 1) {
			t.Errorf("%s: %+v, want abstained %v, with a label", body, label, want)
		}
	}
}
