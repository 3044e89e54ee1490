package outputs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Labels is the kind of outputs that are any number of labels for a text.
var Labels = Register(Spec[LabelsTarget, LabelsPrediction]{
	Name: "labels", Description: "any number of labels", Field: "labels", Traits: Traits{HasLabels: true},
	Names: func(t *LabelsTarget, visit func(name *string)) {
		for _, names := range [][]string{t.Labels, t.Absent} {
			for i := range names {
				visit(&names[i])
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
		return LabelsJSON{labelsByProbability(p), topLabels(p.Probabilities, in)}
	},
	Data: func(p *LabelsPrediction, _ Input) any { return p.Labels },
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["labels"],
		"properties": {"labels": ` + topSchema + `, "top": ` + topSchema + `}
	}`,
	Answers: labelsAnswers,
	Sample:  labelsSample,
})

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

// LabelsJSON is the JSON of a prediction: the labels that hold, the likeliest first.
type LabelsJSON struct {
	Labels []LabelJSON `json:"labels"`
	Top    []LabelJSON `json:"top,omitempty"` // the likeliest labels, if Input.Top requires them
}

func labelsByProbability(p *LabelsPrediction) []LabelJSON {
	all := []LabelJSON{}
	for i, id := range p.IDs {
		all = append(all, LabelJSON{Label: p.Labels[i], Probability: Probability(p.Probabilities[id])})
	}
	slices.SortStableFunc(all, func(x, y LabelJSON) int { return cmp.Compare(y.Probability, x.Probability) })
	return all
}

// nameLabels sets the names of predicted labels.
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

var labelsSample = SampleSpec[LabelsTarget, LabelsPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*LabelsTarget, SampleText) {
		t := &LabelsTarget{Labels: []string{}}
		for c, label := range labels.Names() {
			if (i+1)>>c&1 == 1 {
				t.Labels = append(t.Labels, label)
			}
		}
		t.IDs = labels.IDs(t.Labels)
		return t, sampleSignals(words, t.IDs...)
	},
	Check: func(p *LabelsPrediction, _ nn.Rows, _, labels int) error {
		if p.IDs == nil || len(p.Probabilities) != labels {
			return fmt.Errorf("labels %v with %d probabilities, of %d labels", p.IDs, len(p.Probabilities), labels)
		}
		for i, id := range p.IDs {
			if id < 0 || id >= labels || i > 0 && id <= p.IDs[i-1] {
				return fmt.Errorf("labels %v, want ascending numbers below %d", p.IDs, labels)
			}
		}
		return nil
	},
	Record: func(i int, label string, labels []string) map[string]any {
		return map[string]any{"text": "a red kite", "labels": []any{label, labels[0]}[:min(i, 1)+1]}
	},
	Right: func(t *LabelsTarget, labels *corpus.Labels) *LabelsPrediction {
		return sureLabels(func(c int) bool { return slices.Contains(t.IDs, c) }, labels)
	},
	Wrong: func(p *LabelsPrediction, labels *corpus.Labels) *LabelsPrediction {
		return sureLabels(func(c int) bool { return !slices.Contains(p.IDs, c) }, labels)
	},
	Unseen: func(*LabelsTarget) *LabelsTarget {
		return &LabelsTarget{Labels: []string{"unseen"}, IDs: []int{corpus.Unknown}}
	},
}

// sureLabels is the prediction of the labels that hold, with probability 1.
func sureLabels(holds func(c int) bool, labels *corpus.Labels) *LabelsPrediction {
	p := &LabelsPrediction{IDs: []int{}, Probabilities: make([]float32, len(labels.Names()))}
	for c := range labels.Names() {
		if holds(c) {
			p.IDs, p.Probabilities[c] = append(p.IDs, c), 1
		}
	}
	nameLabels(p, nil, labels)
	return p
}
