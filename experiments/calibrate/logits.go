package calibrate

import (
	"context"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
)

// SkipUncalibrated makes the Read of a run leave out the groups of tasks without a head that can be calibrated, unless
// all are so.
func SkipUncalibrated(o *predict.Opened) {
	skipped := make([]bool, len(o.Data.Groups))
	for g := range skipped {
		skipped[g] = !slices.ContainsFunc(o.Model.Groups[g].Heads(), func(h multitask.Head) bool {
			return h.Head.Describe().Calibrator != nil
		})
	}
	if slices.Contains(skipped, false) {
		o.Data.Skipped = skipped
	}
}

// HeadLogits are what a head that can be calibrated computes for the examples of a split that are labelled for it.
type HeadLogits struct {
	Task, Head string
	Labels     []string
	Unknown    []string // labels of examples that the head does not know, whose numbers are -1, -2, …
	Calibrator heads.Calibrator
	Thresholds []float32 // at which each of many labels holds by training
	Examples   []calibration.Example
}

// Name returns the name of the label with a number, of the head's or of Unknown.
func (l HeadLogits) Name(id int) string {
	if id < 0 {
		return l.Unknown[-1-id]
	}
	return l.Labels[id]
}

func (l HeadLogits) only(numbers []int) HeadLogits {
	all := l.Examples
	l.Examples = make([]calibration.Example, len(numbers))
	for i, n := range numbers {
		l.Examples[i] = all[n]
	}
	return l
}

func (l HeadLogits) holding() []int {
	counts := make([]int, len(l.Labels))
	for _, e := range l.Examples {
		for _, id := range e.Gold {
			if id >= 0 {
				counts[id]++
			}
		}
	}
	return counts
}

func (l HeadLogits) gold() []int {
	all := make([]int, len(l.Examples))
	for i, e := range l.Examples {
		all[i] = e.Gold[0]
	}
	return all
}

// probabilities returns those of the examples, [examples][labels], as the head predicts them calibrated by c.
func (l HeadLogits) probabilities(c heads.Calibration) [][]float32 {
	all := make([][]float32, len(l.Examples))
	for i, e := range l.Examples {
		all[i] = l.Calibrator.Probabilities(e.Logits, c)
	}
	return all
}

// Logits returns the logits of a run's heads that can be calibrated, for the examples of a split, which Read has
// read. Heads without a labelled example have none. It is as Evaluate otherwise.
func Logits(ctx context.Context, o *predict.Opened, split string, progress func(done, of int)) ([]HeadLogits, error) {
	if err := o.CheckMemory(split); err != nil {
		return nil, err
	}
	t := o.Data.Experiment.Training
	ofGroup := o.OfAll(split, progress)
	var all []HeadLogits
	for g, group := range o.Data.Groups {
		examples, of := group.Examples[split], &o.Model.Groups[g]
		if examples == nil {
			continue
		}
		logits, err := o.Model.Logits(ctx, of, examples, t.BatchSize, t.BatchTokens, ofGroup)
		if err != nil {
			return nil, err
		}
		h := 0
		for _, task := range of.Tasks {
			for _, head := range task.Heads {
				if logits[h] != nil {
					l := HeadLogits{Task: task.Name, Head: head.Name, Labels: head.Labels.Names(),
						Calibrator: head.Head.Describe().Calibrator, Thresholds: thresholdsOf(head)}
					l.Examples, l.Unknown = labelledLogits(task.Type.Output(), examples, h, logits[h])
					all = append(all, l)
				}
				h++
			}
		}
	}
	return all, nil
}

func thresholdsOf(head multitask.Head) []float32 {
	if tuner := head.Head.Describe().Tuner; tuner != nil && tuner.Thresholds() != nil {
		return tuner.Thresholds()
	}
	return slices.Repeat([]float32{0.5}, len(head.Labels.Names()))
}

// labelledLogits returns the logits of the examples that have a target for head h, with the numbers of its labels, and
// the labels without a number of the head, which are numbered from -1 down.
func labelledLogits(kind *outputs.Kind, examples []*corpus.Example, h int, logits [][][]float32) (
	all []calibration.Example, unknown []string) {
	for i, e := range examples {
		target := e.Targets[h]
		if target == nil {
			continue
		}
		gold, names := slices.Clone(kind.Count(target).Labels), kind.Unknown(target)
		for l, id := range gold {
			if id >= 0 {
				continue
			}
			name := ""
			if id == corpus.Unknown && len(names) > 0 {
				name, names = names[0], names[1:]
			}
			if !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
			gold[l] = -1 - slices.Index(unknown, name)
		}
		all = append(all, calibration.Example{Logits: logits[i], Gold: gold})
	}
	return all, unknown
}
