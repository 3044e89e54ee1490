package calibrate

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// HeadReport says how well a head's probabilities agree with what is right, before and after.
type HeadReport struct {
	Task     string `json:"task"`
	Head     string `json:"head"`
	Examples int    `json:"examples"`

	Before calibration.Measures `json:"before"`
	After  calibration.Measures `json:"after"`
	// Curve and Answered are of a head with one label: coverage and accuracy where the less probable answers are left
	// out, and at the least probability that was fitted.
	Curve    []calibration.Point `json:"curve,omitempty"`
	Answered *calibration.Point  `json:"answered,omitempty"`
	Sets     *SetReport          `json:"sets,omitempty"`
	// LabelsBefore and LabelsAfter are of a head with many labels.
	LabelsBefore *LabelFigures `json:"labels_before,omitempty"`
	LabelsAfter  *LabelFigures `json:"labels_after,omitempty"`
}

// LabelFigures compare the labels that hold by thresholds with the right ones, over all labels of all examples.
type LabelFigures struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1_micro"`
	MacroF1   float64 `json:"f1_macro"` // mean over the labels that hold or are right
}

// SetReport is about conformal sets.
type SetReport struct {
	Alpha    float64  `json:"alpha"`
	Coverage *float64 `json:"coverage"` // the fraction of sets with the right label; nil where they were fitted
	Size     float64  `json:"size"`     // mean number of labels
	Empty    float64  `json:"empty"`    // fraction of sets without a label
	// Halves is the mean coverage over random halves of the examples: the threshold is that of one half each time, the
	// coverage that of the other. Deviation is the standard deviation between them.
	Halves    float64 `json:"halves_coverage"`
	Deviation float64 `json:"halves_deviation"`
}

// RandomHalves is the number of random halves of a SetReport.
const RandomHalves = 200

// crossReport measures what is fitted by options on the examples that it is fitted to: on each half by a fit to the
// other. Sets, by c, are measured on the half that only they were fitted to.
func crossReport(w *work, l HeadLogits, c checkpoint.HeadCalibration, o Options) HeadReport {
	by := scale(fitScale)
	if c.AsTrained() {
		by = asTrained
	}
	parts := halves(w, l, o, by)
	return measure(w, parts, parts[1].HeadLogits, c, false)
}

// halves returns each half of the examples, with what is fitted by a scale to the other.
func halves(w *work, l HeadLogits, o Options, by scale) []fitted {
	numbers, others := calibration.Halves(len(l.Examples))
	first, second := l.only(numbers), l.only(others)
	byFirst, _ := fitAll(w, first, o, by)
	bySecond, _ := fitAll(w, second, o, by)
	return []fitted{{first, bySecond}, {second, byFirst}}
}

type fitted struct {
	HeadLogits
	by checkpoint.HeadCalibration
}

func measure(w *work, parts []fitted, ofSets HeadLogits, c checkpoint.HeadCalibration, unseen bool) HeadReport {
	l := parts[0].only(nil)
	var after, thresholds [][]float32 // of each example
	for _, part := range parts {
		if !w.more() {
			return HeadReport{}
		}
		l.Examples = append(l.Examples, part.Examples...)
		after = append(after, part.probabilities(part.by.Fitted())...)
		thresholds = append(thresholds, slices.Repeat([][]float32{part.by.Thresholds}, len(part.Examples))...)
	}
	before, one := l.probabilities(heads.Calibration{}), l.Calibrator.Exclusive()
	gold := make([][]int, len(l.Examples))
	for i, e := range l.Examples {
		gold[i] = e.Gold
	}
	r := HeadReport{Task: l.Task, Head: l.Head, Examples: len(l.Examples),
		Before: calibration.Measure(before, gold, one), After: calibration.Measure(after, gold, one)}
	if !one {
		figuresBefore := figuresOf(l, before, slices.Repeat([][]float32{l.Thresholds}, len(gold)), gold)
		figuresAfter := figuresOf(l, after, thresholds, gold)
		r.LabelsBefore, r.LabelsAfter = &figuresBefore, &figuresAfter
		return r
	}

	tops := calibration.Tops(after, l.gold())
	r.Curve = curve(tops)
	if c.MinProbability > 0 {
		r.Answered = answered(tops, parts, c.MinProbability)
	}
	if c.Sets != nil {
		s := setReport(ofSets, c, unseen)
		r.Sets = &s
	}
	return r
}

// answered returns what the answers to all parts are like, each from the least probability of its own calibration on.
func answered(tops []calibration.Decision, parts []fitted, least float32) *calibration.Point {
	var shifted []calibration.Decision // an answer has probability 1, others have 0
	for _, part := range parts {
		for _, d := range tops[len(shifted):][:len(part.Examples)] {
			if d.Probability >= part.by.MinProbability {
				d.Probability = 1
			} else {
				d.Probability = 0
			}
			shifted = append(shifted, d)
		}
	}
	p := calibration.Answered(shifted, 1)
	p.MinProbability = least
	return &p
}

func setReport(l HeadLogits, c checkpoint.HeadCalibration, unseen bool) SetReport {
	p := l.probabilities(c.Fitted())
	gold := calibration.Golds(p, l.gold())
	s := SetReport{Alpha: c.Sets.Alpha}
	for _, row := range p {
		n := calibration.SetSize(row, c.Sets.MinProbability)
		s.Size += float64(n) / float64(len(p))
		if n == 0 {
			s.Empty += 1 / float64(len(p))
		}
	}
	if unseen {
		coverage := calibration.Coverage(gold, c.Sets.MinProbability)
		s.Coverage = &coverage
	}
	s.Halves, s.Deviation = calibration.HalvesCoverage(gold, c.Sets.Alpha, RandomHalves)
	return s
}

// figuresOf compares the labels that hold by the thresholds of each example with the right ones. The metrics are those
// of the task, so that jenga eval has the same.
func figuresOf(l HeadLogits, p, thresholds [][]float32, gold [][]int) LabelFigures {
	task, err := tasks.NewMultiLabel(tasks.MultiLabelOptions{Separator: ","}, tasks.Env{})
	if err != nil {
		panic("calibrate: " + err.Error())
	}
	targets, predictions := make([]outputs.LabelsTarget, len(p)), make([]outputs.LabelsPrediction, len(p))
	right := make([]corpus.Target, len(p))
	for i := range p {
		for _, id := range gold[i] {
			targets[i].Labels = append(targets[i].Labels, l.Name(id))
		}
		predictions[i].Probabilities = p[i]
		predictions[i].Decide(thresholds[i])
		for _, id := range predictions[i].IDs {
			predictions[i].Labels = append(predictions[i].Labels, l.Labels[id])
		}
		right[i] = &targets[i]
	}
	of := map[string]float64{}
	for _, m := range task.Evaluate(right, outputs.Erase(predictions)) {
		of[m.Name] = m.Value
	}
	return LabelFigures{of["precision_micro"], of["recall_micro"], of["f1_micro"], of["f1_macro"]}
}
