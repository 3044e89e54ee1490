package predict

import (
	"context"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
)

// Read reads the examples of a split for all groups that have a file for it, or for one task's group if task is not "".
// Where files names paths or patterns for a task, those are read in place of the experiment's. Warnings about the
// examples are added to Warnings.
func (o *Opened) Read(split, task string, files map[string][]string) error {
	before := len(o.Data.Warnings)
	err := o.Data.Read(split, task, files)
	o.Warnings = append(o.Warnings, o.Data.Warnings[before:]...)
	return err
}

// EvaluateDev reads the dev examples of all tasks, and evaluates the model on them as Evaluate does. It returns a
// warning for each group of tasks that have none, or whose data is not found. watch, if not nil, is called with the
// number of examples, and returns what is called with each number of them that is done, or nil.
func (o *Opened) EvaluateDev(ctx context.Context, watch func(examples int) (done func(n int))) (
	metrics []multitask.GroupMetrics, warnings []string, err error) {
	for _, group := range o.Data.Groups {
		task := o.Data.Experiment.Tasks[group.Tasks[0]].Name
		if err := o.Read(config.Dev, task, nil); err != nil {
			warnings = append(warnings, fmt.Sprintf("task %q is not evaluated on dev: %v", task, err))
		}
	}
	var done func(n int)
	if watch != nil {
		done = watch(o.Examples(config.Dev))
	}
	metrics, err = o.Evaluate(ctx, config.Dev, done)
	return metrics, warnings, err
}

// Examples returns the number of the examples of a split that were read.
func (o *Opened) Examples(split string) (n int) {
	for _, group := range o.Data.Groups {
		n += len(group.Examples[split])
	}
	return n
}

// fitsEvaluation returns an error if the machine has too little memory for an evaluation on a split.
func (o *Opened) fitsEvaluation(split string) error {
	t := o.Data.Experiment.Training
	var sizes []multitask.Size
	for _, group := range o.Data.Groups {
		sizes = append(sizes, multitask.EvaluationSizes(group.Examples[split], t.BatchSize, t.BatchTokens)...)
	}
	return o.machine.FitsEvaluation(o.Model, sizes, o.Data.Experiment.Place("training.batch_size"))
}

// SkipUncalibrated makes Read leave out the groups of tasks without a head that can be calibrated, unless all are so.
func (o *Opened) SkipUncalibrated() {
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
	Examples   []ExampleLogits
}

// ExampleLogits are those of an example, with the labels that are right.
type ExampleLogits = calibration.Example

// Name returns the name of the label with a number, of the head's or of Unknown.
func (l HeadLogits) Name(id int) string {
	if id < 0 {
		return l.Unknown[-1-id]
	}
	return l.Labels[id]
}

// Logits returns the logits of the run's heads that can be calibrated, for the examples of a split, which Read has
// read. Heads without a labelled example have none. It is as Evaluate otherwise.
func (o *Opened) Logits(ctx context.Context, split string, done func(n int)) ([]HeadLogits, error) {
	if err := o.fitsEvaluation(split); err != nil {
		return nil, err
	}
	t := o.Data.Experiment.Training
	var all []HeadLogits
	for g, group := range o.Data.Groups {
		examples, of := group.Examples[split], &o.Model.Groups[g]
		if examples == nil {
			continue
		}
		logits, err := o.Model.Logits(ctx, of, examples, t.BatchSize, t.BatchTokens, done)
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

// thresholdsOf returns the thresholds of training of a head with many labels.
func thresholdsOf(head multitask.Head) []float32 {
	if tuner := head.Head.Describe().Tuner; tuner != nil && tuner.Thresholds() != nil {
		return tuner.Thresholds()
	}
	return slices.Repeat([]float32{0.5}, len(head.Labels.Names()))
}

// labelledLogits returns the logits of the examples that have a target for head h, with the numbers of its labels, and
// the labels without a number of the head, which are numbered from -1 down.
func labelledLogits(kind *outputs.Kind, examples []*corpus.Example, h int, logits [][][]float32) (
	all []ExampleLogits, unknown []string) {
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
		all = append(all, ExampleLogits{Logits: logits[i], Gold: gold})
	}
	return all, unknown
}

// Evaluate evaluates the model on the examples of a split, which Read has read. It returns an error if the machine has
// too little memory. done, if not nil, is called with the number of examples evaluated.
func (o *Opened) Evaluate(ctx context.Context, split string, done func(n int)) ([]multitask.GroupMetrics, error) {
	if err := o.fitsEvaluation(split); err != nil {
		return nil, err
	}

	t := o.Data.Experiment.Training
	var metrics []multitask.GroupMetrics
	for g, group := range o.Data.Groups {
		examples := group.Examples[split]
		if examples == nil {
			continue
		}
		s, err := o.Model.Evaluate(ctx, &o.Model.Groups[g], examples, t.BatchSize, t.BatchTokens, done)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, s)
	}
	return metrics, nil
}
