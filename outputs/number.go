package outputs

import (
	"encoding/json"

	"github.com/jenga-nlp/jenga/nn"
)

// Number is the kind of outputs that are a number for a text.
var Number = registerNumber("number", "a number", Traits{},
	func(p *NumberPrediction, _ Input, rows nn.Rows, example int, shape []int) []Answer {
		return inEach(numberLabel(p.Value), rows, example, 0, shape[1])
	})

// Similarity is the kind of outputs that are the similarity of the texts of a pair, a number; the texts are encoded
// separately. Its targets and predictions are those of Number.
var Similarity = registerNumber("similarity", "a similarity", Traits{Separate: true},
	func(p *NumberPrediction, _ Input, rows nn.Rows, example int, _ []int) []Answer { // the pair's, of [E 1]
		return []Answer{{Label: numberLabel(p.Value), Word: -1, Logits: []int{example}, Texts: textsOf(rows, example)}}
	})

func registerNumber(name, description string, traits Traits,
	answers func(p *NumberPrediction, in Input, rows nn.Rows, example int, shape []int) []Answer) *Kind {
	return Register(Spec[*NumberTarget, *NumberPrediction]{
		Name: name, Description: description, Field: "value", Traits: traits,
		Count:  func(t *NumberTarget) Count { return Count{Units: 1, Number: &t.Value} },
		Number: func(p *NumberPrediction) float64 { return p.Value },
		JSON:   func(p *NumberPrediction, _ Input) any { return NumberAnswer{Finite(p.Value)} },
		Data: func(p *NumberPrediction, _ Input) any {
			if Finite(p.Value) == nil {
				return nil
			}
			return json.Number(numberLabel(p.Value))
		},
		Gold: func(t *NumberTarget, _ Input) any { return json.Number(numberLabel(t.Value)) },
		Schema: `{
			"type": "object", "additionalProperties": false, "properties": {"value": {"type": "number"}}
		}`,
		Answers: answers,
	})
}

// NumberTarget is a gold number.
type NumberTarget struct{ Value float64 }

// NumberPrediction is a predicted number.
type NumberPrediction struct{ Value float64 }

// LargestNumber is the largest magnitude of a gold number: sums of squares of such numbers are finite in float32.
const LargestNumber = 1e15

// NumberAnswer is the JSON of a prediction; empty if it is not finite.
type NumberAnswer struct {
	Value *float64 `json:"value,omitempty"`
}

// Anomaly is the kind of outputs that are the distance of a text from normal texts, a number.
var Anomaly = Register(Spec[*AnomalyTarget, *AnomalyPrediction]{
	Name: "anomaly", Description: "an anomaly score", Field: "label",
	Count: func(t *AnomalyTarget) Count { // the mean of these numbers is the fraction of anomalies
		number := new(float64)
		if t.Anomalous {
			*number = 1
		}
		return Count{Units: 1, Number: number}
	},
	JSON: func(p *AnomalyPrediction, _ Input) any { return AnomalyAnswer{Finite(p.Distance), p.Alarm} },
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
})

// AnomalyTarget reports whether a text is an anomaly.
type AnomalyTarget struct{ Anomalous bool }

// AnomalyPrediction is the predicted distance of a text from normal texts.
type AnomalyPrediction struct {
	Distance float64 // from normal texts
	Alarm    *bool   // whether Distance is above the threshold; nil if no threshold was tuned on dev
}

// AnomalyAnswer is the JSON of a prediction.
type AnomalyAnswer struct {
	Value *float64 `json:"value,omitempty"`
	Alarm *bool    `json:"alarm,omitempty"`
}
