// Package run trains an experiment's model and leaves it in a run folder: checkpoints, metrics, and the experiment as
// it ran.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/experiments/teach"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
)

// Run is a model that is ready to be trained as its experiment says.
type Run struct {
	Data     *dataset.Dataset
	Model    *multitask.Model
	Warnings []plugin.Warning // of the data, the model and its training
	Keep     bool             // Train returns an error if its folder holds a run
	// Restored is called when Train has restored the state of the checkpoint that it continues from, before it goes on,
	// with the step that it goes on after, and what begins anew after the end of a training, else ""; it may be nil.
	Restored func(after report.State, anew string)

	Growth *events.Growth // what it takes over from a run; nil: it continues none

	built     *model.Assembled
	evaluated bool               // whether evaluations on dev have metrics
	plan      train.Plan         // without CacheFile
	sums      checkpoint.Encoder // of the files that the encoder is read from; zero: not computed yet
	resumed   *resume.Point      // nil: trained from the start
	machine   memory.Machine
	base      *checkpoint.BaseRun // that it continues; nil: none
	rankNames []string            // of the processes of the training, for messages
	teachers  *teach.Teachers     // nil: no task has one
	pass      Pass                // for teachers; may be nil
}

// Pass is called when a pass over streamed training data begins, and returns what reports its progress.
type Pass = func(name string) (progress func(done, of int))

// Prepare reads the data of an experiment's splits, builds its model and prepares it for training. It reports the
// passes over streamed training data to pass, which may be nil; the end of ctx ends them.
func Prepare(ctx context.Context, e *config.Experiment, pass Pass, splits ...string) (*Run, error) {
	return prepareWith(ctx, e, dataset.Options{Pass: pass}, splits...)
}

func prepareWith(ctx context.Context, e *config.Experiment, o dataset.Options, splits ...string) (*Run, error) {
	base, err := checkpoint.ReadBaseRun(ctx, e)
	if err != nil {
		return nil, err
	}
	if base != nil {
		base.SetAdapters(e)
		o.Labels = base.Labels(e)
	}
	data, err := dataset.Load(ctx, e, o, splits...)
	if err != nil {
		var mistakes plugin.Mistakes
		mistakes.Append(err)
		mistakes.Append(model.CheckEncoder(e))
		return nil, mistakes.Err()
	}
	r, err := build(ctx, data, base, o.Pass)
	if err != nil {
		return nil, err
	}
	r.Warnings = append(r.ofTeachers(), r.Warnings...)
	from := cmp.Or(e.Model.BaseRun, e.Model.FromRun)
	if from == nil {
		return r, nil
	}
	_, unfinished := report.CheckFinished(filepath.Dir(from.File))
	for _, w := range unfinished { // of a run that is a teacher too, it is there
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append([]plugin.Warning{w}, r.Warnings...)
		}
	}
	return r, nil
}

// Mistakes returns err, with which config.Read returned e, and the mistakes of data and encoder that can be found all
// the same. e may be nil.
func Mistakes(ctx context.Context, e *config.Experiment, err error, splits ...string) error {
	if e == nil {
		return err
	}
	var mistakes plugin.Mistakes
	mistakes.Append(err)
	mistakes.Append(dataset.Check(ctx, e, splits...))
	if !e.ModelMistaken {
		mistakes.Append(model.CheckEncoder(e))
	}
	return mistakes.Err()
}

// build builds the model of a dataset with its initial weights, those of base where it continues that, prepares it for
// training, and checks that dev has labels for the metric that selects the best model. The end of ctx ends the reading
// of texts without labels. With an error the dataset is closed.
func build(ctx context.Context, data *dataset.Dataset, base *checkpoint.BaseRun, pass Pass) (_ *Run, err error) {
	built, err := model.New(data)
	if err != nil {
		data.Close()
		return nil, err
	}
	r := &Run{
		Data: built.Data, Model: built.Model, Warnings: slices.Clone(built.Warnings),
		built: built, machine: memory.This(), base: base, pass: pass,
	}
	defer func() { r.closeAfter(err) }()
	if base != nil {
		if err := base.TakeOver(built); err != nil {
			return nil, err
		}
	}
	var mistakes plugin.Mistakes
	if r.teachers, err = teach.New(ctx, built, r.data()); r.teachers != nil {
		err = r.teachers.Check(ctx)
	}
	mistakes.Append(err)
	var onDev []multitask.GroupMetrics // as evaluations will have them
	for g, texts := range r.Data.Groups {
		onDev = append(onDev, r.Model.Groups[g].ExpectedMetrics(texts.Examples[config.Dev]))
	}
	if r.experiment().Training.EvalStrategy != "no" {
		r.checkDev(onDev, &mistakes)
	}
	r.warnUntuned(onDev)
	r.warnShards()
	if r.plan, err = r.newPlan(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.Empty() {
		return nil, mistakes.Err()
	}
	if base != nil {
		r.Growth = r.growth()
		r.warnUncalibrated()
		r.readKept(ctx)
	}
	return r, nil
}

// closeAfter closes the files of the data and of the encoder, and the device that it computes on, if err says that the
// run is not used.
func (r *Run) closeAfter(err error) {
	if err != nil {
		r.teachers.Close()
		r.Data.Close()
		encoders.Close(r.Model.Encoder)
	}
}

// Resume prepares the run of an experiment to continue its training from a checkpoint, which must not be nil. The
// experiment must be the run's own, the data, the version of jenga and its kernels the same, but for what is allowed,
// of resume.Changes. What differs is an error here, or, of the data, in Train. It reports the passes over streamed
// training data to pass, which may be nil; the end of ctx ends them.
func Resume(ctx context.Context, e *config.Experiment, from *resume.Point, pass Pass, allowed []string) (*Run, error) {
	return resumeWith(ctx, e, from, dataset.Options{Pass: pass}, allowed)
}

func resumeWith(ctx context.Context, e *config.Experiment, from *resume.Point, o dataset.Options, allowed []string) (
	*Run, error) {
	// what the run has saved, and what differs
	about, err := checkpoint.Read(ctx, from.Checkpoint, from.Folder)
	if err != nil {
		return nil, resume.WithRemedy(ctx, err, from.Folder, from.Checkpoint)
	}
	if err := from.TakeShards(e); err != nil {
		return nil, err
	}
	text, err := resume.Text(e, from.Folder)
	if err != nil {
		return nil, err
	}
	patience := e.Training.EarlyStoppingPatience
	if err := errors.Join(from.CheckExperiment(text, allowed), from.CheckPatience(patience)); err != nil {
		return nil, err
	}
	if err := about.Encoder.CheckSHA256(ctx); err != nil {
		return nil, err
	}
	r, err := rebuild(ctx, e, about, o)
	if err != nil {
		return nil, err
	}
	if from.Ended {
		err = from.Fill(about, e, r.Data.Tokenizer.Size())
	}
	if err == nil {
		err = from.CheckDevice(r.deviceName())
	}
	if err != nil {
		r.closeAfter(err)
		return nil, err
	}
	r.resumed = from
	return r, nil
}

// Refit prepares the run in folder to be trained again on its own data, by the options in its experiment file and in
// sets, with the labels and the weights of its checkpoint. Train then replaces it. The end of ctx ends the reading of
// data.
func Refit(ctx context.Context, folder string, sets []string) (*Run, error) {
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	e, err := config.Read(ctx, file, sets)
	if err != nil {
		return nil, err
	}
	r, err := rebuild(ctx, e, about, dataset.Options{})
	if err != nil {
		return nil, err
	}
	if err := checkpoint.ReadWeights(saved, r.Model); err != nil {
		r.closeAfter(err)
		return nil, err
	}
	return r, nil
}

// rebuild builds the model of a run that is trained again, with the labels and the tokenizer of its checkpoint, and its
// initial weights. The encoder is that of the base model: the checkpoint's has LoRA merged into its weights.
func rebuild(ctx context.Context, e *config.Experiment, about checkpoint.Description, o dataset.Options) (*Run, error) {
	about.SetAdapters(e)
	labels, err := about.Labels()
	if err != nil {
		return nil, err
	}
	tokenizer, err := about.Encoder.OpenTokenizer()
	if err != nil {
		return nil, err
	}
	base, err := checkpoint.ReadBaseRun(ctx, e)
	if err != nil {
		return nil, err
	}
	o.Tokenizer, o.Labels = tokenizer, labels
	data, err := dataset.Load(ctx, e, o, config.Train, config.Dev)
	if err != nil {
		return nil, err
	}
	r, err := build(ctx, data, base, o.Pass)
	if err != nil {
		return nil, err
	}
	if about.Encoder.Copied() {
		return r, nil
	}
	r.sums = about.Encoder
	if err := r.sums.CheckRead(checkpoint.EncoderFiles(r.Model.Encoder, data.Tokenizer)); err != nil {
		r.closeAfter(err)
		return nil, err
	}
	return r, nil
}

func (r *Run) experiment() *config.Experiment { return r.Data.Experiment }

// newPlan returns the training plan of the experiment, without the file for a frozen encoder's states, which is in the
// run folder. It checks the parts that it names against the model.
func (r *Run) newPlan() (train.Plan, error) {
	e, t := r.experiment(), r.experiment().Training

	// weighting and sampler
	taught := r.taught()
	weighting, err := t.Weighting.Build(weightings.EnvOf(taught.Model(r.Model), e.Seed))
	if err != nil {
		return train.Plan{}, err
	}
	sampler, err := r.newSampler(weighting)
	if err != nil {
		return train.Plan{}, err
	}

	// optimizer and schedule
	optimizer, err := t.Optimizer.Build(struct{}{})
	if err != nil {
		return train.Plan{}, err
	}
	schedule, err := t.Scheduler.Build(updates.ScheduleEnv{Rate: t.Rate})
	if err != nil {
		return train.Plan{}, err
	}

	// options
	plan := train.Plan{
		Options: t.Options, Seed: e.Seed, UnfreezeEvery: e.Model.Freeze.Unfreeze.Every,
		Optimizer: optimizer, Schedule: schedule, Sampler: sampler, Weighting: weighting, Taught: taught,
		NeverEvaluate: r.neverEvaluates(), CacheMemory: int64(t.CacheMemory) << 20,
	}
	if t.EvalStrategy == "steps" {
		plan.EvaluateEvery = t.EvalSteps
	}
	for _, check := range []struct {
		err   error
		place plugin.Place
		what  string
	}{
		{plan.CheckWeighting(r.Model), t.Weighting.Place, fmt.Sprintf("weighting %q", t.Weighting.Type)},
		{plan.CheckUnfreezing(r.Model), e.Place("model.freeze"), "model: freeze: unfreeze"},
		{plan.CheckLayerDecay(r.Model), e.Place("training.layer_decay"), "training: layer_decay"},
	} {
		if check.err != nil {
			return train.Plan{}, &plugin.Mistake{Place: check.place, Err: fmt.Errorf("%s: %w", check.what, check.err)}
		}
	}
	return plan, nil
}

// taught returns what steps read where tasks have teachers, else nil.
func (r *Run) taught() *multitask.Taught {
	if r.teachers == nil {
		return nil
	}
	return r.teachers.Taught
}

// deviceName returns the name of the device that the encoder computes on, "" for the processor.
func (r *Run) deviceName() string { return encoders.DeviceName(r.Model.Encoder.Describe().Device) }

func (r *Run) neverEvaluates() bool {
	return r.experiment().Training.EvalStrategy == "no" || !r.evaluated
}

func (r *Run) buildSampler(env samplers.Env) (samplers.Sampler, error) {
	choice := r.experiment().Training.Sampling
	sampler, err := choice.Build(env)
	if err != nil {
		return sampler, err
	}
	if sampler.ObserveEvaluation != nil && r.neverEvaluates() {
		return sampler, &plugin.Mistake{Place: choice.Place,
			Err: fmt.Errorf("sampling %q follows the metrics on dev, and there is no evaluation; "+
				"want training.eval_strategy: epoch or steps, and labelled examples in dev", choice.Type)}
	}
	t := r.experiment().Training
	if env.All && len(env.Groups) > 1 && sampler.AtOnce() == 1 && t.Accumulate == 1 {
		r.Warnings = append(r.Warnings, plugin.Warn(choice.Place,
			"training: weighting %q compares the tasks of a step, but sampling %q draws one group of tasks a step; "+
				"want a sampling with groups: all", t.Weighting.Type, choice.Type))
	}
	return sampler, nil
}

func (r *Run) planIn(folder string) train.Plan {
	plan, t := r.plan, r.experiment().Training
	if !r.writes() { // the folder may be on the machine of the process that writes it, or on a slow network
		folder = os.TempDir()
	}
	if !t.NoCacheFile {
		plan.CacheFile = func() (multitask.CacheFile, error) { return openStates(cmp.Or(t.CacheFolder, folder)) }
	}
	return plan
}

// checkDev reports a mistake if dev has no labels for the metric that selects the best model.
func (r *Run) checkDev(onDev []multitask.GroupMetrics, mistakes *plugin.Mistakes) {
	var unevaluated []plugin.Warning
	var undefined, causes []string
	e, t := r.experiment(), r.experiment().Training
	selects, examples := t.Selection.Metric, 0
	for g, group := range onDev {
		examples += len(r.Data.Groups[g].Examples[config.Dev])
		h := -1
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				h++
				if of := undefinedMetrics(task.Task, head, selects); len(of) > 0 {
					undefined = append(undefined, of...)
					causes = append(causes, r.Data.ConstantNumber(&r.Data.Groups[g], h))
				}
				if head.Metrics == nil {
					unevaluated = append(unevaluated, plugin.Warn(plugin.Place{},
						"task %q: dev has no label for head %q, which is not evaluated", task.Task, head.Head))
				}
			}
		}
	}

	figures := report.Metrics(onDev)
	_, chosen := figures[selects]
	if t.Selection.Weights != nil && len(figures) > 0 {
		chosen = true
		r.checkWeights(onDev, mistakes)
	}
	switch r.evaluated = len(figures) > 0; {
	case !r.evaluated && t.EarlyStoppingPatience > 0:
		mistakes.Add(e.Place("training.early_stopping_patience"),
			"training: early_stopping_patience: no dev example is labelled, so no model is better than another")
	case !r.evaluated:
		why := "no dev example is labelled"
		if examples == 0 {
			why = "dev has no examples"
		}
		r.Warnings = append(r.Warnings, plugin.Warn(plugin.Place{},
			"%s: no evaluation; best/ will be the last checkpoint", why))
	case !chosen && len(undefined) > 0 && !strings.HasSuffix(selects, "_loss"):
		mistakes.Add(e.Place("training.metric_for_best_model"), "training: metric_for_best_model: %s has no value: "+
			"%s; want one that dev defines: %s%s", selects, strings.Join(undefined, ", "),
			strings.Join(slices.Sorted(maps.Keys(figures)), ", "), reasons(causes))
	case !chosen:
		mistakes.Add(e.Place("training.metric_for_best_model"), "training: metric_for_best_model: %s",
			plugin.Unknown("metric with labels in dev", selects, slices.Sorted(maps.Keys(figures))))
	default:
		r.Warnings = append(r.Warnings, unevaluated...)
		for _, what := range undefined {
			r.Warnings = append(r.Warnings, plugin.Warn(plugin.Place{}, "%s, and is left out of means", what))
		}
	}
	for g := range r.Data.Groups {
		r.Warnings = append(r.Warnings, r.Data.CheckTargets(&r.Data.Groups[g], config.Dev, true)...)
	}
}

// reasons returns sentences to append to another, those that are not empty.
func reasons(causes []string) string {
	text := ""
	for _, cause := range causes {
		if cause != "" {
			text += "; " + cause
		}
	}
	return text
}

// checkWeights reports tasks with a weight in metric_for_best_model whose main metrics have no value on dev.
func (r *Run) checkWeights(groups []multitask.GroupMetrics, mistakes *plugin.Mistakes) {
	e := r.experiment()
	for _, group := range groups {
		for _, task := range group.Tasks {
			if _, ok := task.Main(); !ok && e.Training.Selection.Weights[task.Task] > 0 {
				mistakes.Add(e.Place("training.metric_for_best_model"),
					"training: metric_for_best_model: task %q has no metric on dev; leave it out, or label examples",
					task.Task)
			}
		}
	}
}

// undefinedMetrics describes the metrics of a head that dev leaves undefined, of the main one and the one that selects
// the best model.
func undefinedMetrics(task string, head multitask.HeadMetrics, selects string) []string {
	var all []string
	for i, m := range head.Metrics {
		if m.Undefined && (i == 0 || report.HeadMetric(task, head.Head, m.Name) == selects) {
			all = append(all, fmt.Sprintf("task %q: %s of head %q is undefined on dev", task, m.Name, head.Head))
		}
	}
	return all
}

// warnUntuned warns of heads that are tuned in evaluations on dev, where there are no evaluations or dev has no label
// for the head.
func (r *Run) warnUntuned(onDev []multitask.GroupMetrics) {
	for g, group := range r.Model.Groups {
		for t, task := range group.Tasks {
			for h, head := range task.Heads {
				tuner, cause := head.Head.Describe().Tuner, ""
				switch {
				case tuner == nil:
					continue
				case r.experiment().Training.EvalStrategy == "no":
					cause = "eval_strategy: no"
				case onDev[g].Tasks[t].Heads[h].Examples == 0:
					cause = "dev has no label for it"
				default:
					continue
				}
				what, then := tuner.Untuned(head.Name)
				r.Warnings = append(r.Warnings,
					plugin.Warn(plugin.Place{}, "task %q: %s (%s): %s", task.Name, what, cause, then))
			}
		}
	}
}
