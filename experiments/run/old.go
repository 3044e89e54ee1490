package run

import (
	"context"
	"errors"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
)

// oldTasks evaluates the tasks of the base run on dev, beside which the encoder learns. Several processes do it
// together, where the first one has a reason to.
type oldTasks struct {
	run      *Run
	training *multitask.Training
	open     bool // the others wait for the first process to evaluate, or not
}

// before returns the main metrics of their heads before training.
func (o *oldTasks) before(ctx context.Context) ([]report.OldHead, error) {
	if _, err := o.decide(true); err != nil {
		return nil, err
	}
	groups, err := o.evaluate(ctx, true)
	return slices.DeleteFunc(report.OldHeads(groups), func(h report.OldHead) bool { return o.run.trains(h.Task) }), err
}

// after returns all with the metrics of the model as it is. e is its evaluation.
// A signal does not interrupt it: only the evaluation itself could be repeated.
func (o *oldTasks) after(all []report.OldHead, e multitask.Evaluation) ([]report.OldHead, error) {
	if _, err := o.decide(true); err != nil {
		return all, err
	}
	groups, err := o.evaluate(context.Background(), false)
	return report.After(all, slices.Concat(groups, e.Groups)), err
}

// afterAll is after without an evaluation, when the other processes have ended.
func (o *oldTasks) afterAll(all []report.OldHead) ([]report.OldHead, error) {
	group := func(g *multitask.Group, dev []*corpus.Example) (multitask.GroupMetrics, error) {
		t := o.run.experiment().Training
		return o.run.Model.Evaluate(context.Background(), g, dev, t.BatchSize, t.BatchTokens, nil)
	}
	groups, err := o.evaluateBy(true, group)
	return report.After(all, groups), err
}

// occasion runs what may evaluate in the first process, at a time when the others join it.
func (o *oldTasks) occasion(do func() error) error {
	if o == nil || o.run.plan.Ranks == nil {
		return do()
	}
	o.open = true
	err := do()
	if o.open {
		_, failed := o.decide(false)
		err = errors.Join(err, failed)
	}
	return err
}

// join evaluates if the first process does, at the same time.
func (o *oldTasks) join(ctx context.Context, rehearsed bool) error {
	if o == nil {
		return nil
	}
	evaluates, err := o.decide(false)
	if err == nil && evaluates {
		_, err = o.evaluate(ctx, rehearsed)
	}
	return err
}

// decide reports whether any process evaluates: the first one decides.
func (o *oldTasks) decide(evaluates bool) (bool, error) {
	o.open = false
	if o.run.plan.Ranks == nil {
		return evaluates, nil
	}
	number := []float64{0}
	if evaluates {
		number[0] = 1
	}
	err := o.run.plan.Ranks.MaxNumbers(number)
	return number[0] > 0, err
}

// evaluate returns the metrics of the tasks that are kept and, with rehearsed, of those that are rehearsed. A signal
// does not interrupt it in one of several processes, for which the others would wait.
func (o *oldTasks) evaluate(ctx context.Context, rehearsed bool) ([]multitask.GroupMetrics, error) {
	if o.run.plan.Ranks != nil {
		ctx = context.WithoutCancel(ctx)
	}
	group := func(g *multitask.Group, dev []*corpus.Example) (multitask.GroupMetrics, error) {
		return o.training.EvaluateGroup(ctx, g, dev)
	}
	all, err := o.evaluateBy(rehearsed, group)
	if err != nil && o.run.plan.Ranks != nil {
		err = midway{err}
	}
	return all, err
}

// evaluateBy is evaluate by a function that evaluates one group.
func (o *oldTasks) evaluateBy(rehearsed bool,
	evaluate func(*multitask.Group, []*corpus.Example) (multitask.GroupMetrics, error),
) (all []multitask.GroupMetrics, err error) {
	add := func(g *multitask.Group, dev []*corpus.Example) {
		if err != nil || len(dev) == 0 {
			return
		}
		var metrics multitask.GroupMetrics
		metrics, err = evaluate(g, dev)
		all = append(all, metrics)
	}
	for g, group := range o.run.Data.Groups {
		if rehearsed && slices.ContainsFunc(group.Tasks, o.run.isKept) {
			add(&o.run.Model.Groups[g], group.Examples[config.Dev])
		}
	}
	for g := range o.run.built.Kept {
		add(&o.run.built.Kept[g], o.run.Data.Kept.Groups[g].Examples[config.Dev])
	}
	return all, err
}

// isKept reports whether a task of the experiment, by its number, is one of the base run, and not of this experiment.
func (r *Run) isKept(number int) bool { return r.experiment().Tasks[number].Keep }

// trains reports whether a task is one of this experiment.
func (r *Run) trains(name string) bool {
	return slices.ContainsFunc(r.experiment().Tasks, func(t config.Task) bool { return t.Name == name && !t.Keep })
}

// newOldTasks returns the tasks of the base run, nil where the run continues none.
func (r *Run) newOldTasks(training *multitask.Training) *oldTasks {
	if r.Growth == nil {
		return nil
	}
	return &oldTasks{run: r, training: training}
}
