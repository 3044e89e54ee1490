package outputs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Label is the kind of outputs that are one of several labels for a text.
var Label = Register(Spec[*LabelTarget, *LabelPrediction]{
	Name: "label", Description: "one label", Field: "label",
	Traits:         Traits{HasLabels: true, OneLabel: true},
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
		all := LabelAnswer{Label: p.Label, Probability: Probability(p.Probabilities[p.ID]), Abstained: p.Abstained,
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
	Gold: func(t *LabelTarget, _ Input) any { return t.Label },
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

// LabelAnswer is the JSON of a prediction.
type LabelAnswer struct {
	Label       string        `json:"label"`
	Probability Probability   `json:"probability"`
	Abstained   bool          `json:"abstained,omitempty"` // the label is too improbable to be an answer
	Set         []string      `json:"set,omitzero"`        // conformal set, the likeliest label first, if there is one
	Top         []LabelAnswer `json:"top,omitempty"`       // the likeliest labels, if Input.Top requires them
}

const topSchema = `{"type": "array", "items": {
	"type": "object", "additionalProperties": false, "required": ["label", "probability"],
	"properties": {
		"label": {"type": "string"},
		"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1}
	}
}}`

// topLabels lists the in.Top likeliest labels, the likeliest first, of equal ones the first.
func topLabels(probabilities []float32, in Input) []LabelAnswer {
	if in.Top == 0 {
		return nil
	}
	all := make([]LabelAnswer, len(probabilities))
	for id, probability := range probabilities {
		all[id] = LabelAnswer{Label: in.Labels.Name(id), Probability: Probability(probability)}
	}
	slices.SortStableFunc(all, func(x, y LabelAnswer) int { return cmp.Compare(y.Probability, x.Probability) })
	return all[:min(in.Top, len(all))]
}

func nameLabel(p *LabelPrediction, _ *corpus.Example, labels *corpus.Labels) {
	p.Label = labels.Name(p.ID)
}

func unknown(names []string, ids []int) []string {
	var all []string
	for i, id := range ids {
		if id == corpus.Unknown {
			all = append(all, names[i])
		}
	}
	return all
}

// Labels is the kind of outputs that are any number of labels for a text.
var Labels = Register(Spec[*LabelsTarget, *LabelsPrediction]{
	Name: "labels", Description: "any number of labels", Field: "labels", PerHead: "label",
	Traits: Traits{HasLabels: true},
	Names: func(t *LabelsTarget, visit func(name *string)) {
		for _, names := range []*[]string{&t.Labels, &t.Absent} {
			changed := false
			for i, before := range *names {
				visit(&(*names)[i])
				changed = changed || (*names)[i] != before
			}
			if changed {
				*names = distinct(*names)
			}
		}
	},
	NamedByID:      func(t *LabelsTarget) bool { return t.Absent != nil },
	AssignIDs:      func(t *LabelsTarget, labels *corpus.Labels) { t.IDs = labels.IDs(t.Labels) },
	Unknown:        func(t *LabelsTarget) []string { return unknown(t.Labels, t.IDs) },
	Count:          func(t *LabelsTarget) Count { return Count{Units: 1, Labels: t.IDs} },
	Right:          func(t *LabelsTarget, p *LabelsPrediction) bool { return sameNames(t.Labels, p.Labels) },
	NamePrediction: nameLabels,
	Decide: func(p *LabelsPrediction, by Decision, labels *corpus.Labels) {
		held := p.IDs
		if by.Thresholds != nil {
			p.Decide(by.Thresholds)
		}
		for c, threshold := range by.Thresholds {
			if threshold != threshold && slices.Contains(held, c) {
				p.IDs = append(p.IDs, c)
			}
		}
		slices.Sort(p.IDs)
		p.IDs = slices.DeleteFunc(p.IDs, func(id int) bool { return !(p.Probabilities[id] >= by.MinProbability) })
		nameLabels(p, nil, labels)
	},
	JSON: func(p *LabelsPrediction, in Input) any {
		return LabelsAnswer{labelsByProbability(p), topLabels(p.Probabilities, in)}
	},
	Data:  func(p *LabelsPrediction, _ Input) any { return p.Labels },
	Gold:  func(t *LabelsTarget, _ Input) any { return append([]string{}, t.Labels...) },
	Finds: func(p *LabelsPrediction) (found, texts int) { return len(p.IDs), 1 },
	Rate:  func(rate float64) string { return fmt.Sprintf("%.2f labels for each text", rate) },
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["labels"],
		"properties": {"labels": ` + topSchema + `, "top": ` + topSchema + `}
	}`,
	Answers: labelsAnswers,
})

// distinct returns names without those that are "", and each once.
func distinct(names []string) []string {
	left := names[:0]
	for _, name := range names {
		if name != "" && !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	return left
}

// labelsAnswers returns the labels that hold, the likeliest if none does.
func labelsAnswers(p *LabelsPrediction, in Input, rows nn.Rows, example int, shape []int) (all []Answer) {
	for _, id := range p.IDs {
		all = append(all, inEach(in.Labels.Name(id), rows, example, id, shape[1])...)
	}
	if len(p.IDs) == 0 && len(p.Probabilities) > 0 {
		id := floats.Largest(p.Probabilities)
		if best := p.Probabilities[id]; best == best { // not NaN
			all = inEach(in.Labels.Name(id), rows, example, id, shape[1])
		}
	}
	return all
}

// LabelsTarget is the labels that hold.
type LabelsTarget struct {
	Labels []string // that hold; empty if none does
	Absent []string // listed as not holding, as in a list of 0 and 1; labels in neither list do not hold either
	IDs    []int    // numbers of Labels
}

// LabelsPrediction is the labels that are predicted to hold.
type LabelsPrediction struct {
	IDs           []int     // ascending; not nil
	Probabilities []float32 // of each label
	Labels        []string
}

// Decide lists the labels whose probability is at least the threshold of each.
func (p *LabelsPrediction) Decide(thresholds []float32) {
	p.IDs = []int{}
	for c, probability := range p.Probabilities {
		if probability >= thresholds[c] {
			p.IDs = append(p.IDs, c)
		}
	}
}

// LabelsAnswer is the JSON of a prediction: the labels that hold, the likeliest first.
type LabelsAnswer struct {
	Labels []LabelAnswer `json:"labels"`
	Top    []LabelAnswer `json:"top,omitempty"` // the likeliest labels, if Input.Top requires them
}

func labelsByProbability(p *LabelsPrediction) []LabelAnswer {
	all := []LabelAnswer{}
	for i, id := range p.IDs {
		all = append(all, LabelAnswer{Label: p.Labels[i], Probability: Probability(p.Probabilities[id])})
	}
	slices.SortStableFunc(all, func(x, y LabelAnswer) int { return cmp.Compare(y.Probability, x.Probability) })
	return all
}

func nameLabels(p *LabelsPrediction, _ *corpus.Example, labels *corpus.Labels) {
	p.Labels = make([]string, len(p.IDs))
	for i, id := range p.IDs {
		p.Labels[i] = labels.Name(id)
	}
}

// sameNames reports whether two lists, each without duplicates, have the same names.
func sameNames(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}
