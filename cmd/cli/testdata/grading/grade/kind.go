// Package grade adds ordinal regression to jenga: an output kind, grades of an ordered scale, with its task and head.
package grade

import (
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Kind is the kind of outputs that are a grade of an ordered scale. An experiment lists the grades as labels, lowest
// first.
var Kind = outputs.Register(outputs.Spec[*Target, *Prediction]{
	Name: "grade", Description: "a grade of an ordered scale", Field: "grade", Traits: outputs.Traits{HasLabels: true},
	Names:     func(t *Target, see func(name *string)) { see(&t.Grade) },
	AssignIDs: func(t *Target, labels *corpus.Labels) { t.Rank = labels.ID(t.Grade) },
	Unknown: func(t *Target) []string {
		if t.Rank == corpus.Unknown {
			return []string{t.Grade}
		}
		return nil
	},
	Count:          func(t *Target) outputs.Count { return outputs.Count{Units: 1, Labels: []int{t.Rank}} },
	Right:          func(t *Target, p *Prediction) bool { return t.Grade == p.Grade },
	NamePrediction: func(p *Prediction, _ *corpus.Example, labels *corpus.Labels) { p.Grade = labels.Name(p.Rank) },
	JSON: func(p *Prediction, _ outputs.Input) any {
		return JSON{p.Grade, p.Rank, outputs.Probability(p.probability())}
	},
	Data: func(p *Prediction, _ outputs.Input) any { return p.Grade },
	Gold: func(t *Target, _ outputs.Input) any { return t.Grade },
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["grade", "rank", "probability"],
		"properties": {
			"grade": {"type": "string"}, "rank": {"type": "integer", "minimum": 0},
			"probability": {"type": ["number", "null"]}
		}
	}`,
	// The grade depends on the logits of all thresholds, in each of the example's windows.
	Answers: func(p *Prediction, _ outputs.Input, rows nn.Rows, example int, shape []int) []outputs.Answer {
		var all []outputs.Answer
		for text, e := range rows.Example {
			if e != example {
				continue
			}
			one := outputs.Answer{Label: p.Grade, Word: -1, Texts: []int{text}}
			for k := range shape[1] {
				one.Logits = append(one.Logits, text*shape[1]+k)
			}
			all = append(all, one)
		}
		return all
	},
})

// Target is the grade of a labelled example.
type Target struct {
	Grade string
	Rank  int // from 0, the lowest; corpus.Unknown where training has no such grade
}

// Prediction is a predicted grade.
type Prediction struct {
	Rank  int
	Above []float32 // probabilities that the rank is above 0, 1, …
	Grade string
}

// probability is P(rank ≥ r) - P(rank ≥ r+1) of the predicted rank r, 0 where the thresholds contradict each other.
func (p *Prediction) probability() float64 {
	at, above := 1.0, 0.0
	if p.Rank > 0 {
		at = float64(p.Above[p.Rank-1])
	}
	if p.Rank < len(p.Above) {
		above = float64(p.Above[p.Rank])
	}
	return math.Max(0, at-above)
}

// JSON is the grade in the output of `jenga predict`.
type JSON struct {
	Grade       string              `json:"grade"`
	Rank        int                 `json:"rank"`
	Probability outputs.Probability `json:"probability"`
}
