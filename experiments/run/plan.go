package run

import (
	"cmp"
	"fmt"
	"os"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// newPlan returns the training plan of the experiment, without the file for a frozen encoder's states, which is in the
// run folder. It checks the parts that it names against the model.
func (r *Run) newPlan() (multitask.Plan, error) {
	t := r.experiment().Training

	// weighting and sampler
	weighting, err := t.Weighting.Build(r.Model.WeightingEnv(r.experiment().Seed))
	if err != nil {
		return multitask.Plan{}, err
	}
	sampler, err := r.newSampler(weighting)
	if err != nil {
		return multitask.Plan{}, err
	}

	// optimizer and schedule
	optimizer, err := t.Optimizer.Build(struct{}{})
	if err != nil {
		return multitask.Plan{}, err
	}
	curve, err := t.Scheduler.Build(multitask.ScheduleEnv{Rate: t.LearningRate})
	if err != nil {
		return multitask.Plan{}, err
	}

	// numbers and flags
	plan := multitask.Plan{
		Seed: r.experiment().Seed, Epochs: t.NumEpochs, MaxSteps: t.MaxSteps,
		BatchSize: t.BatchSize, BatchTokens: t.BatchTokens, Accumulate: t.GradientAccumulationSteps,
		UnfreezeEvery: r.experiment().Model.Unfreeze,
		Recompute:     t.Recompute, BFloat16: t.Precision == config.BF16,
		Rate: t.LearningRate, HeadRate: t.HeadRate, LayerDecay: t.LayerDecay,
		WeightDecay: t.WeightDecay, ClipNorm: t.MaxGradNorm, Average: t.EMA,
		LossLimit: t.LossLimit, SkipBadSteps: t.OnBadLoss == config.SkipBadLoss,
		WarmupRatio: t.WarmupRatio, WarmupSteps: t.WarmupSteps,
		Optimizer: optimizer, Curve: curve,
		Sampler: sampler, Weighting: weighting, Shards: t.Shards,
		RoundGradients: t.GradientDtype == config.BF16, NativeSums: t.AllReduce == config.NativeSums,
		NeverEvaluate: r.neverEvaluates(),
		CacheMemory:   int64(t.CacheMemory) << 20,
	}
	if t.EvalStrategy == "steps" {
		plan.EvaluateEvery = t.EvalSteps
	}
	if err := plan.CheckWeighting(r.Model); err != nil {
		return multitask.Plan{}, &plugin.Mistake{Place: t.Weighting.Place,
			Err: fmt.Errorf("weighting %q: %w", t.Weighting.Type, err)}
	}
	if err := plan.CheckUnfreezing(r.Model); err != nil {
		return multitask.Plan{}, &plugin.Mistake{Place: r.experiment().Place("model.freeze"),
			Err: fmt.Errorf("model: freeze: unfreeze: %w", err)}
	}
	if err := plan.CheckLayerDecay(r.Model); err != nil {
		return multitask.Plan{}, &plugin.Mistake{Place: r.experiment().Place("training.layer_decay"),
			Err: fmt.Errorf("training: layer_decay: %w", err)}
	}
	return plan, nil
}

// neverEvaluates reports whether the model is not evaluated while it is trained.
func (r *Run) neverEvaluates() bool {
	return r.experiment().Training.EvalStrategy == "no" || !r.evaluated
}

// buildSampler makes the experiment's sampler for the groups in env.
func (r *Run) buildSampler(env multitask.SamplerEnv) (multitask.Sampler, error) {
	choice := r.experiment().Training.Sampling
	sampler, err := choice.Build(env)
	if err != nil {
		return nil, err
	}
	if _, observes := sampler.(multitask.EvaluationObserver); observes && r.neverEvaluates() {
		return nil, &plugin.Mistake{Place: choice.Place,
			Err: fmt.Errorf("sampling %q follows the metrics on dev, and there is no evaluation; "+
				"want training.eval_strategy: epoch or steps, and labelled examples in dev", choice.Type)}
	}
	return sampler, nil
}

// planIn returns the training plan of the run in folder.
func (r *Run) planIn(folder string) multitask.Plan {
	plan, t := r.plan, r.experiment().Training
	if !r.writes() { // the folder may be on the machine of the process that writes it, or on a slow network
		folder = os.TempDir()
	}
	if !t.NoCacheFile {
		plan.CacheFile = func() (multitask.CacheFile, error) { return openStates(cmp.Or(t.CacheFolder, folder)) }
	}
	return plan
}
