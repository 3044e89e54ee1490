package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
)

// growth describes what the run takes over from its base run.
func (r *Run) growth() *events.Growth {
	e, base := r.experiment(), r.base
	g := &events.Growth{Run: base.Folder, Fusion: e.Model.Fusion.Type, Learns: !e.Model.Fixed()}
	taken := map[string]bool{}
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		grown := events.GrownTask{Task: task.Name, From: task.From, State: events.New}
		switch {
		case task.Keep && e.Training.Rehearse > 0:
			grown.State = events.Rehearsed
		case task.Keep:
			grown.State = events.Kept
		case task.From != "":
			grown.State = events.TrainedOn
		}
		taken[task.From] = true
		heads := map[string]bool{}
		for _, head := range task.Heads {
			of := r.grownHead(task, head.Name)
			heads[of.From] = true
			grown.Heads = append(grown.Heads, of)
		}
		if from := base.Task(task); from != nil {
			for _, head := range from.Heads {
				if !heads[head.Name] {
					grown.Dropped = append(grown.Dropped, head.Name)
				}
			}
		}
		g.Tasks = append(g.Tasks, grown)
	}
	for _, task := range base.Tasks {
		if !taken[task.Name] {
			g.Dropped = append(g.Dropped, task.Name)
		}
	}
	return g
}

func (r *Run) grownHead(task config.Task, head string) events.GrownHead {
	grown := events.GrownHead{Head: head}
	var names []string
	if set := r.Data.Labels[multitask.HeadName{Task: task.Name, Head: head}]; set != nil {
		names = set.Names()
	}
	from := r.base.Head(task, head)
	if from == nil {
		grown.Labels = len(names)
		return grown
	}
	grown.From, grown.Labels = from.Name, max(len(names), len(from.Labels))
	for _, name := range names {
		if !slices.Contains(from.Labels, name) {
			grown.NewLabels = append(grown.NewLabels, name)
		}
	}
	return grown
}

// warnUncalibrated warns if the base run has a calibration: it is one of other weights.
func (r *Run) warnUncalibrated() {
	path := filepath.Join(r.experiment().Model.BaseRun.Model, runfolder.CalibrationFile)
	if runfolder.Exists(path) {
		r.Warnings = append(r.Warnings, plugin.Warn(plugin.Place{File: path},
			"the run that grows from it does not take it over; jenga calibrate fits one to that run"))
	}
}

// readKept reads dev of the tasks that are kept and not trained beside an encoder that learns, by which the run says
// what they lose. Their data may be gone, which is a warning.
func (r *Run) readKept(ctx context.Context) {
	kept := r.Data.Kept
	if kept == nil || r.experiment().Model.Fixed() {
		return
	}
	kept.Missing = r.experiment().MovedHint
	if err := kept.Read(ctx, config.Dev, "", nil); err != nil {
		r.Warnings = append(r.Warnings, plugin.Warn(plugin.Place{}, "what the kept tasks lose is not measured: %v",
			err))
		for g := range kept.Groups {
			delete(kept.Groups[g].Examples, config.Dev)
		}
		return
	}
	r.Warnings = append(r.Warnings, kept.Warnings...)
}

// newSampler makes the experiment's sampler. Beside it the tasks of the base run are rehearsed.
func (r *Run) newSampler(weighting weightings.Weighting) (samplers.Sampler, error) {
	t, env := r.experiment().Training, samplers.EnvOf(r.taught().Model(r.Model), weighting.ComparesTasks())
	if t.Rehearse == 0 {
		return r.buildSampler(env)
	}
	names, old := env.Groups, make([]bool, len(env.Groups))
	own := env
	own.Groups, own.Tasks = nil, nil
	for g, group := range r.Data.Groups {
		if old[g] = r.experiment().KeepsAll(group.Tasks); !old[g] {
			own.Groups, own.Tasks = append(own.Groups, names[g]), append(own.Tasks, env.Tasks[g])
		}
	}
	if len(own.Groups) == len(names) { // the tasks of the run read the texts of others
		return r.buildSampler(env)
	}
	sampler, err := r.buildSampler(own)
	if err != nil {
		return samplers.Sampler{}, err
	}
	return samplers.NewRehearsal(sampler, names, old, t.Rehearse), nil
}

// oldTasks evaluates the tasks of the base run on dev, beside which the encoder learns. Several processes do it
// together, where the first one has a reason to.
type oldTasks struct {
	run  *Run
	open bool // the others wait for the first process to evaluate, or not
}

// before returns the main metrics of their heads before training.
func (o *oldTasks) before(ctx context.Context) ([]report.Change, error) {
	if _, err := o.decide(true); err != nil {
		return nil, err
	}
	groups, err := o.evaluate(ctx, o.run.plan.Ranks, true)
	return slices.DeleteFunc(report.Changes(groups), func(h report.Change) bool { return o.run.trains(h.Task) }), err
}

// after returns all with the metrics of the model as it is. e is its evaluation.
// A signal does not interrupt it: only the evaluation itself could be repeated.
func (o *oldTasks) after(all []report.Change, e train.Evaluation) ([]report.Change, error) {
	if _, err := o.decide(true); err != nil {
		return all, err
	}
	groups, err := o.evaluate(context.Background(), o.run.plan.Ranks, false)
	return report.SetAfter(all, slices.Concat(groups, e.Groups)), err
}

// afterAll is after without an evaluation, when the other processes have ended.
func (o *oldTasks) afterAll(all []report.Change) ([]report.Change, error) {
	groups, err := o.evaluate(context.Background(), nil, true)
	return report.SetAfter(all, groups), err
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
		_, err = o.evaluate(ctx, o.run.plan.Ranks, rehearsed)
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

// evaluate returns the metrics of the tasks that are kept and, with rehearsed, of those that are rehearsed, evaluated
// by ranks together. A signal does not interrupt it in one of several, for which the others would wait.
func (o *oldTasks) evaluate(ctx context.Context, ranks *collective.Group, rehearsed bool) (
	all []multitask.GroupMetrics, err error) {
	if ranks != nil {
		ctx = context.WithoutCancel(ctx)
	}
	model, t := multitask.Cached{Model: o.run.Model, Ranks: ranks}, o.run.experiment().Training
	add := func(g *multitask.Group, dev []*corpus.Example) {
		if err != nil || len(dev) == 0 {
			return
		}
		var metrics multitask.GroupMetrics
		metrics, err = model.Evaluate(ctx, g, dev, t.BatchSize, t.BatchTokens, nil)
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
	if err != nil && ranks != nil {
		err = midway{err}
	}
	return all, err
}

// isKept reports whether a task of the experiment, by its number, is one of the base run, and not of this experiment.
func (r *Run) isKept(number int) bool { return r.experiment().Tasks[number].Keep }

func (r *Run) trains(name string) bool {
	return slices.ContainsFunc(r.experiment().Tasks, func(t config.Task) bool { return t.Name == name && !t.Keep })
}

func (r *Run) newOldTasks() *oldTasks {
	if r.Growth == nil {
		return nil
	}
	return &oldTasks{run: r}
}
