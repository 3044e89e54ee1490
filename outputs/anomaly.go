package outputs

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Anomaly is the kind of outputs that are the distance of a text from normal texts, a number.
var Anomaly = Register(Spec[AnomalyTarget, AnomalyPrediction]{
	Name: "anomaly", Description: "an anomaly score", Field: "label",
	Count: func(t *AnomalyTarget) Count { // the mean of these numbers is the fraction of anomalies
		number := new(float64)
		if t.Anomalous {
			*number = 1
		}
		return Count{Units: 1, Number: number}
	},
	JSON: func(p *AnomalyPrediction, _ Input) any { return AnomalyJSON{Finite(p.Distance), p.Alarm} },
	Schema: `{
		"type": "object", "additionalProperties": false,
		"properties": {"value": {"type": "number"}, "alarm": {"type": "boolean"}}
	}`,
	Answers: func(p *AnomalyPrediction, _ Input, rows nn.Rows, example int, shape []int) []Answer {
		if shape[1] != 1 {
			return nil // features, not logits
		}
		return inEach(numberLabel(p.Distance), rows, example, 0, 1)
	},
	Sample: SampleSpec[AnomalyTarget, AnomalyPrediction]{
		// Of each run of as many texts as there are labels, the last is an anomaly.
		Text: func(i, words int, labels *corpus.Labels) (*AnomalyTarget, SampleText) {
			v := i % len(labels.Names()) / (len(labels.Names()) - 1)
			return &AnomalyTarget{v == 1}, sampleSignals(words, v)
		},
		Learned:  func(t *AnomalyTarget) bool { return !t.Anomalous },
		Detached: true,
		Check:    func(p *AnomalyPrediction, _ nn.Rows, _, _ int) error { return checkFinite(p.Distance) },
		Record: func(i int, _ string, _ []string) map[string]any {
			return map[string]any{"text": "a red kite", "label": []string{"normal", "odd"}[i%2]}
		},
		Right: func(t *AnomalyTarget, _ *corpus.Labels) *AnomalyPrediction {
			return &AnomalyPrediction{Distance: map[bool]float64{true: 1}[t.Anomalous]}
		},
		Wrong: func(p *AnomalyPrediction, _ *corpus.Labels) *AnomalyPrediction {
			return &AnomalyPrediction{Distance: -p.Distance}
		},
		Unseen: func(*AnomalyTarget) *AnomalyTarget { return &AnomalyTarget{true} },
	},
})

// AnomalyTarget reports whether a text is an anomaly.
type AnomalyTarget struct{ Anomalous bool }

// AnomalyPrediction is the predicted distance of a text from normal texts.
type AnomalyPrediction struct {
	Distance float64 // from normal texts
	Alarm    *bool   // whether Distance is above the threshold; nil if no threshold was tuned on dev
}

// AnomalyJSON is the JSON of a prediction.
type AnomalyJSON struct {
	Value *float64 `json:"value,omitempty"`
	Alarm *bool    `json:"alarm,omitempty"`
}
