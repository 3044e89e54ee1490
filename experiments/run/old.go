package run

import (
	"context"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
)

// oldTasks evaluates the tasks of the base run on dev, beside which the encoder learns.
type oldTasks struct{ run *Run }

// before returns the main metrics of their heads before training.
func (o *oldTasks) before(ctx context.Context) ([]report.OldHead, error) {
	groups, err := o.evaluate(ctx, true)
	return slices.DeleteFunc(report.OldHeads(groups), func(h report.OldHead) bool { return o.run.trains(h.Task) }), err
}

// after returns all with the metrics of the model as it is. e is its evaluation; it is empty without dev.
// A signal does not interrupt it: only the evaluation itself could be repeated.
func (o *oldTasks) after(all []report.OldHead, e multitask.Evaluation) ([]report.OldHead, error) {
	groups, err := o.evaluate(context.Background(), e.Step == 0)
	return report.After(all, slices.Concat(groups, e.Groups)), err
}

// evaluate returns the metrics of the tasks that are kept and, with rehearsed, of those that are rehearsed.
func (o *oldTasks) evaluate(ctx context.Context, rehearsed bool) (all []multitask.GroupMetrics, err error) {
	t := o.run.experiment().Training
	add := func(g *multitask.Group, dev []*corpus.Example) {
		if err != nil || len(dev) == 0 {
			return
		}
		var metrics multitask.GroupMetrics
		metrics, err = o.run.Model.Evaluate(ctx, g, dev, t.BatchSize, t.BatchTokens, nil)
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

// measureOld evaluates the tasks of the base run before training, unless that is done, and at each best evaluation.
func (c *checkpointer) measureOld(ctx context.Context) (err error) {
	old := &oldTasks{c.run}
	if c.bests.Old == nil {
		if c.bests.Old, err = old.before(ctx); err != nil {
			return err
		}
	}
	c.old = old
	return nil
}
