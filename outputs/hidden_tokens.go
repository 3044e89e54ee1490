package outputs

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
)

// HiddenTokens is the kind of outputs that are the hidden tokens of a text.
var HiddenTokens = Register(Spec[*HiddenTarget, *HiddenPrediction]{
	Name: "hidden_tokens", Description: "the hidden tokens", Traits: Traits{HidesTokens: true},
	JSON: hiddenJSON,
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["hidden"],
		"properties": {"hidden": {"type": "array", "items": {
			"type": "object", "additionalProperties": false, "required": ["start", "end", "guesses"],
			"properties": {
				"start": {"type": "integer", "minimum": 0}, "end": {"type": "integer", "minimum": 0},
				"in_pair": {"type": "boolean"},
				"guesses": {"type": "array", "items": {
					"type": "object", "additionalProperties": false, "required": ["token", "probability"],
					"properties": {
						"token": {"type": "string"},
						"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1}
					}
				}}
			}
		}}}
	}`,
	Answers: hiddenAnswers,
})

// HiddenTarget is the hidden tokens of a text.
type HiddenTarget struct {
	IDs []int32 // in the order of the example's windows; empty until they are drawn for a batch
}

// HiddenPrediction is the predicted tokens of a text.
type HiddenPrediction struct{ Tokens []HiddenToken }

// HiddenToken is the prediction for one hidden token.
type HiddenToken struct {
	Window, Token int     // its position in the example
	Guesses       []Guess // the likeliest first
}

// Guess is a token of the vocabulary and its probability.
type Guess struct {
	ID          int32
	Probability float32
}

// HiddenAnswer is the JSON of a prediction.
type HiddenAnswer struct {
	Hidden []HiddenTokenAnswer `json:"hidden"` // empty if the text has no mask token
}

// HiddenTokenAnswer is the prediction for a mask token of a text, or of its pair.
type HiddenTokenAnswer struct {
	Start   int           `json:"start"` // of the mask token
	End     int           `json:"end"`
	InPair  bool          `json:"in_pair,omitempty"`
	Guesses []GuessAnswer `json:"guesses"` // the likeliest first
}

// GuessAnswer is a token and its probability.
type GuessAnswer struct {
	Token       string      `json:"token"`
	Probability Probability `json:"probability"`
}

// hiddenJSON lists the predictions for the mask tokens of an example, in their order. For a token in several windows, it
// is that of the window whose ends are farthest from the token.
func hiddenJSON(p *HiddenPrediction, in Input) any {
	type place struct {
		pair  bool
		start int
	}
	all, margins, at := []HiddenTokenAnswer{}, []int{}, map[place]int{}
	for _, hidden := range p.Tokens {
		w := in.Example.Windows[hidden.Window]
		margin, part := min(hidden.Token, len(w.IDs)-1-hidden.Token), InText
		if w.Segments[hidden.Token] == 1 || w.Second {
			part = InPair
		}
		span := in.Offsets(part, w.Offsets[hidden.Token])
		h := HiddenTokenAnswer{Start: span.Start, End: span.End, InPair: part == InPair}
		for _, g := range hidden.Guesses {
			h.Guesses = append(h.Guesses, GuessAnswer{in.Tokenizer.Token(g.ID), Probability(g.Probability)})
		}
		switch i, there := at[place{h.InPair, h.Start}]; {
		case !there:
			at[place{h.InPair, h.Start}] = len(all)
			all, margins = append(all, h), append(margins, margin)
		case margin > margins[i]:
			all[i], margins[i] = h, margin
		}
	}
	slices.SortFunc(all, func(a, b HiddenTokenAnswer) int {
		switch {
		case a.InPair == b.InPair:
			return cmp.Compare(a.Start, b.Start)
		case a.InPair:
			return 1
		}
		return -1
	})
	return HiddenAnswer{all}
}

// hiddenAnswers returns the likeliest token of each hidden one, with their logits in [M V].
func hiddenAnswers(p *HiddenPrediction, in Input, rows nn.Rows, example int, shape []int) (all []Answer) {
	for i, row := range rows.Hidden {
		text := textOf(rows, row)
		if rows.Example[text] == example && len(all) < len(p.Tokens) {
			id := p.Tokens[len(all)].Guesses[0].ID
			all = append(all, Answer{in.Tokenizer.Token(id), -1, []int{i*shape[1] + int(id)}, []int{text}})
		}
	}
	return all
}
