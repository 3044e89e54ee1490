package outputs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Label is the kind of outputs that are one of several labels for a text.
var Label = Register(Spec[LabelTarget, LabelPrediction]{
	Name: "label", Description: "one label", Field: "label", Traits: Traits{HasLabels: true},
	Names:          func(t *LabelTarget, visit func(name *string)) { visit(&t.Label) },
	AssignIDs:      func(t *LabelTarget, labels *corpus.Labels) { t.ID = labels.ID(t.Label) },
	Unknown:        func(t *LabelTarget) []string { return unknown([]string{t.Label}, []int{t.ID}) },
	Count:          func(t *LabelTarget) Count { return Count{Units: 1, Labels: []int{t.ID}} },
	Right:          func(t *LabelTarget, p *LabelPrediction) bool { return t.Label == p.Label },
	NamePrediction: nameLabel,
	Decide: func(p *LabelPrediction, by Decision, _ *corpus.Labels) {
		likeliest := p.Probabilities[p.ID]
		if threshold := by.threshold(p.ID); threshold == threshold {
			p.Abstained = !(likeliest >= threshold)
		}
		p.Abstained = p.Abstained || !(likeliest >= by.MinProbability)
	},
	JSON: func(p *LabelPrediction, in Input) any {
		all := LabelJSON{Label: p.Label, Probability: Probability(p.Probabilities[p.ID]), Abstained: p.Abstained,
			Top: topLabels(p.Probabilities, in)}
		if p.Set != nil {
			all.Set = []string{}
		}
		for _, id := range p.Set {
			all.Set = append(all.Set, in.Labels.Name(id))
		}
		return all
	},
	Data: func(p *LabelPrediction, _ Input) any {
		if p.Abstained {
			return ""
		}
		return p.Label
	},
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["label", "probability"],
		"properties": {
			"label": {"type": "string"},
			"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
			"abstained": {"const": true},
			"set": {"type": "array", "items": {"type": "string"}},
			"top": ` + topSchema + `
		}
	}`,
	Answers: func(p *LabelPrediction, in Input, rows nn.Rows, example int, shape []int) []Answer {
		return inEach(in.Labels.Name(p.ID), rows, example, p.ID, shape[1])
	},
	Sample: labelSample,
})

// LabelTarget is a gold label.
type LabelTarget struct {
	Label string
	ID    int // its number; corpus.Unknown if it does not occur in training
}

// LabelPrediction is a predicted label.
type LabelPrediction struct {
	ID            int
	Probabilities []float32 // of each label
	Label         string
	Abstained     bool  // the label is too improbable to be an answer
	Set           []int // conformal set, the likeliest label first; nil if the head has none
}

// LabelJSON is the JSON of a prediction.
type LabelJSON struct {
	Label       string      `json:"label"`
	Probability Probability `json:"probability"`
	Abstained   bool        `json:"abstained,omitempty"` // the label is too improbable to be an answer
	Set         []string    `json:"set,omitzero"`        // conformal set, the likeliest label first; nil: none
	Top         []LabelJSON `json:"top,omitempty"`       // the likeliest labels, if Input.Top requires them
}

// topSchema is the JSON Schema of topLabels.
const topSchema = `{"type": "array", "items": {
	"type": "object", "additionalProperties": false, "required": ["label", "probability"],
	"properties": {
		"label": {"type": "string"},
		"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1}
	}
}}`

// topLabels lists the in.Top likeliest labels, the likeliest first, of equal ones the first.
func topLabels(probabilities []float32, in Input) []LabelJSON {
	if in.Top == 0 {
		return nil
	}
	all := make([]LabelJSON, len(probabilities))
	for id, probability := range probabilities {
		all[id] = LabelJSON{Label: in.Labels.Name(id), Probability: Probability(probability)}
	}
	slices.SortStableFunc(all, func(x, y LabelJSON) int { return cmp.Compare(y.Probability, x.Probability) })
	return all[:min(in.Top, len(all))]
}

// nameLabel sets the name of a predicted label.
func nameLabel(p *LabelPrediction, _ *corpus.Example, labels *corpus.Labels) {
	p.Label = labels.Name(p.ID)
}

// unknown lists the names whose number is corpus.Unknown.
func unknown(names []string, ids []int) []string {
	var all []string
	for i, id := range ids {
		if id == corpus.Unknown {
			all = append(all, names[i])
		}
	}
	return all
}

var labelSample = SampleSpec[LabelTarget, LabelPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*LabelTarget, SampleText) {
		id := i % len(labels.Names())
		return &LabelTarget{labels.Name(id), id}, sampleSignals(words, id)
	},
	Check: func(p *LabelPrediction, _ nn.Rows, _, labels int) error {
		if p.ID < 0 || p.ID >= labels || len(p.Probabilities) != labels {
			return fmt.Errorf("label %d with %d probabilities, of %d labels", p.ID, len(p.Probabilities), labels)
		}
		return nil
	},
	Record: func(_ int, label string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "label": label}
	},
	Right: func(t *LabelTarget, labels *corpus.Labels) *LabelPrediction { return sureLabel(t.ID, labels) },
	Wrong: func(p *LabelPrediction, labels *corpus.Labels) *LabelPrediction {
		return sureLabel((p.ID+1)%len(labels.Names()), labels)
	},
	Unseen: func(*LabelTarget) *LabelTarget { return &LabelTarget{"unseen", corpus.Unknown} },
}

// sureLabel is the prediction of a label with probability 1.
func sureLabel(id int, labels *corpus.Labels) *LabelPrediction {
	p := &LabelPrediction{ID: id, Probabilities: make([]float32, len(labels.Names())), Label: labels.Name(id)}
	p.Probabilities[id] = 1
	return p
}
