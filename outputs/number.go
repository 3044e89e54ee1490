package outputs

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Number is the kind of outputs that are a number for a text.
var Number = Register(Spec[NumberTarget, NumberPrediction]{
	Name: "number", Description: "a number", Field: "value",
	Count:  countNumber,
	JSON:   func(p *NumberPrediction, _ Input) any { return NumberJSON{Finite(p.Value)} },
	Data:   numberData,
	Schema: numberSchema,
	Answers: func(p *NumberPrediction, _ Input, rows nn.Rows, example int, shape []int) []Answer {
		return inEach(numberLabel(p.Value), rows, example, 0, shape[1])
	},
	Sample: SampleSpec[NumberTarget, NumberPrediction]{
		Text: func(i, words int, labels *corpus.Labels) (*NumberTarget, SampleText) {
			v := i % len(labels.Names())
			return &NumberTarget{float64(v)}, sampleSignals(words, v)
		},
		Check: checkNumber,
		Record: func(i int, _ string, _ []string) map[string]any {
			return map[string]any{"text": "a red kite", "value": json.Number(strconv.Itoa(i))}
		},
		Right:  rightNumber,
		Wrong:  wrongNumber,
		Unseen: farNumber,
	},
})

// NumberTarget is a gold number.
type NumberTarget struct{ Value float64 }

// NumberPrediction is a predicted number.
type NumberPrediction struct{ Value float64 }

// LargestNumber is the largest magnitude of a gold number: sums of squares of such numbers are finite in float32.
const LargestNumber = 1e15

// NumberJSON is the JSON of a prediction; empty if it is not finite.
type NumberJSON struct {
	Value *float64 `json:"value,omitempty"`
}

const numberSchema = `{"type": "object", "additionalProperties": false, "properties": {"value": {"type": "number"}}}`

func numberData(p *NumberPrediction, _ Input) any {
	if Finite(p.Value) == nil {
		return nil
	}
	return json.Number(numberLabel(p.Value))
}

func countNumber(t *NumberTarget) Count { return Count{Units: 1, Number: &t.Value} }

func checkNumber(p *NumberPrediction, _ nn.Rows, _, _ int) error { return checkFinite(p.Value) }

func checkFinite(v float64) error {
	if !floats.IsFinite(v) {
		return fmt.Errorf("the number is %v, want a finite one", v)
	}
	return nil
}

func rightNumber(t *NumberTarget, _ *corpus.Labels) *NumberPrediction {
	return &NumberPrediction{t.Value}
}

func wrongNumber(p *NumberPrediction, _ *corpus.Labels) *NumberPrediction {
	return &NumberPrediction{-p.Value}
}

func farNumber(*NumberTarget) *NumberTarget { return &NumberTarget{1e3} }
