package outputs

import (
	"encoding/json"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Similarity is the kind of outputs that are the similarity of the texts of a pair, a number; the texts are encoded
// separately. Its targets and predictions are those of Number.
var Similarity = Register(Spec[NumberTarget, NumberPrediction]{
	Name: "similarity", Description: "a similarity", Field: "value", Traits: Traits{Separate: true},
	Count:  countNumber,
	JSON:   func(p *NumberPrediction, _ Input) any { return NumberJSON{Finite(p.Value)} },
	Data:   numberData,
	Schema: numberSchema,
	Answers: func(p *NumberPrediction, _ Input, rows nn.Rows, example int, _ []int) []Answer {
		// the pair's, of [E 1]
		return []Answer{{Label: numberLabel(p.Value), Word: -1, Logits: []int{example}, Texts: textsOf(rows, example)}}
	},
	Sample: SampleSpec[NumberTarget, NumberPrediction]{
		Text:  similarityText,
		Check: checkNumber,
		Record: func(i int, _ string, _ []string) map[string]any {
			return map[string]any{"text": "a red kite", "pair": "a kite", "value": json.Number(strconv.Itoa(i))}
		},
		Right:  rightNumber,
		Wrong:  wrongNumber,
		Unseen: farNumber,
	},
})

// similarityText is a text and a second one, of the same signal if they are similar.
func similarityText(i, words int, labels *corpus.Labels) (*NumberTarget, SampleText) {
	n := len(labels.Names())
	v := i % n
	text := sampleSignals(words, v)
	other := SampleToken{Signals: []int{(i + v) % n}, Word: -1}
	text.Second = []SampleToken{other, other}
	return &NumberTarget{float64(v)}, text
}
