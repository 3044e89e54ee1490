package predict

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/othertexts"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Read reads the examples of a split for all groups that have a file for it, or for one task's group if task is not "".
// Where files names paths or patterns for a task, those are read in place of the experiment's. Warnings about the
// examples are added to Warnings.
func (o *Opened) Read(ctx context.Context, split, task string, files map[string][]string) error {
	before := len(o.Data.Warnings)
	err := o.Data.Read(ctx, split, task, files)
	o.Warnings = append(o.Warnings, o.Data.Warnings[before:]...)
	return err
}

// EvaluateDev reads the dev examples of all tasks, and evaluates the model on them as Evaluate does. It returns the main
// metrics of all heads, before a change of the model, and a warning for each group of tasks that have no examples, or
// whose data is not found.
func (o *Opened) EvaluateDev(ctx context.Context, progress func(done, of int)) (
	heads []report.Change, warnings []plugin.Warning, err error) {
	for _, group := range o.Data.Groups {
		task := o.Data.Experiment.Tasks[group.Tasks[0]].Name
		switch err := o.Read(ctx, config.Dev, task, nil); {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil:
			warnings = append(warnings, plugin.Warn(plugin.Place{File: o.Folder}, "task %q is not evaluated on dev: %v",
				task, err))
		}
	}
	metrics, err := o.Evaluate(ctx, config.Dev, progress)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.Folder, err)
	}
	for _, task := range o.Data.Experiment.Tasks {
		for _, head := range task.Heads {
			change := report.Change{Task: task.Name, Head: head.Name}
			change.Metric, change.Before = report.MainMetric(metrics, task.Name, head.Name)
			heads = append(heads, change)
		}
	}
	return heads, warnings, nil
}

// OfAll returns what reports the progress of each group's examples of a split, which Read has read, one group after the
// other, as that of all to progress; nil for nil.
func (o *Opened) OfAll(split string, progress func(done, of int)) func(done, of int) {
	if progress == nil {
		return nil
	}
	before, all := 0, 0
	for _, group := range o.Data.Groups {
		all += len(group.Examples[split])
	}
	return func(done, of int) {
		progress(before+done, all)
		if done == of {
			before += of
		}
	}
}

// CheckMemory returns an error if the machine has too little memory for an evaluation on a split.
func (o *Opened) CheckMemory(split string) error {
	t := o.Data.Experiment.Training
	var sizes []multitask.Size
	for _, group := range o.Data.Groups {
		sizes = append(sizes, multitask.EvaluationSizes(group.Examples[split], t.BatchSize, t.BatchTokens)...)
	}
	return o.machine.FitsEvaluation(o.Model, sizes, o.Data.Experiment.Place("training.batch_size"))
}

// Evaluate evaluates the model on the examples of a split, which Read has read. It returns an error if the machine has
// too little memory. progress, if not nil, is called with the number of examples evaluated, of all.
func (o *Opened) Evaluate(ctx context.Context, split string, progress func(done, of int)) (
	[]multitask.GroupMetrics, error) {
	if err := o.CheckMemory(split); err != nil {
		return nil, err
	}

	t := o.Data.Experiment.Training
	model, ofGroup := multitask.Cached{Model: o.Model, Finite: true}, o.OfAll(split, progress)
	var metrics []multitask.GroupMetrics
	for g, group := range o.Data.Groups {
		examples := group.Examples[split]
		if examples == nil {
			continue
		}
		s, err := model.Evaluate(ctx, &o.Model.Groups[g], examples, t.BatchSize, t.BatchTokens, ofGroup)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, s)
	}
	return metrics, nil
}

// OtherTexts returns what heads of the model that may find nothing in a text, as those of spans, find in texts of a
// split, which Read has read: their own texts, and those of other tasks, about which no example has taught them
// anything. It returns a warning of each that finds far more there than in its own; no heads where there are none.
func (o *Opened) OtherTexts(ctx context.Context, split string) ([]report.HeadRates, []plugin.Warning, error) {
	of := othertexts.Model{Data: o.Data, Model: o.Model, Machine: o.machine}
	heads, err := othertexts.Measure(ctx, of, othertexts.TextsOf(o.Data, split), nil)
	var warnings []plugin.Warning
	for _, text := range othertexts.Warnings(o.Data, split, heads) {
		warnings = append(warnings, plugin.Warn(plugin.Place{}, "%s", text))
	}
	return heads, warnings, err
}
