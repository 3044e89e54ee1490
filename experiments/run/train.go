package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Train trains the run and writes it to folder, in place of an earlier run. It returns an error if the machine has too
// little memory. It reports each multitask.Step, multitask.Evaluation and multitask.Warning to observe.
func (r *Run) Train(ctx context.Context, folder string, observe func(event any) error) (report.Done, error) {
	start := time.Now()

	// memory of training
	if err := checkBase(folder, r.built.EncoderPath); err != nil {
		return report.Done{}, err
	}
	plan, err := r.plan(folder)
	if err != nil {
		return report.Done{}, err
	}
	data := r.data()
	if err := r.checkMemory(plan, data); err != nil {
		return report.Done{}, err
	}
	defer r.machine.limitMemory()()

	// run folder
	metrics, err := r.start(folder)
	if err != nil {
		return report.Done{}, err
	}
	defer metrics.Close()

	// training
	c := checkpointer{
		run: r, folder: folder, selection: selectionOf(r.experiment().Training), taskBest: map[string]float64{},
	}
	lines := json.NewEncoder(metrics)
	err = multitask.Train(ctx, r.Model, data, plan, func(event any) error {
		if r.logs(event) {
			if err := lines.Encode(report.Line(event)); err != nil {
				return err
			}
		}
		if err := observe(event); err != nil {
			return err
		}
		if evaluation, ok := event.(multitask.Evaluation); ok {
			return c.evaluated(evaluation)
		}
		return nil
	})
	if err != nil {
		return report.Done{}, err
	}
	if err := c.finish(); err != nil {
		return report.Done{}, err
	}

	done := c.done()
	done.Seconds = time.Since(start).Seconds()
	if err := lines.Encode(report.Line(done)); err != nil {
		return report.Done{}, err
	}
	return done, metrics.Close()
}

// checkMemory returns an error if training takes more memory than the machine has.
func (r *Run) checkMemory(plan multitask.Plan, data []multitask.Data) error {
	need, err := r.trainingNeed(plan, data)
	if err != nil {
		return err
	}
	return r.machine.fits(need, r.experiment().Place("training.batch_size"))
}

// data lists the examples of each group.
func (r *Run) data() []multitask.Data {
	data := make([]multitask.Data, len(r.Data.Groups))
	for g, group := range r.Data.Groups {
		data[g] = multitask.Data{Train: group.Examples[config.Train], Dev: group.Examples[config.Dev]}
	}
	return data
}

// start creates the run folder, in place of an earlier run, and its metrics file.
func (r *Run) start(folder string) (metrics *os.File, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := clearFolder(folder); err != nil {
		return nil, err
	}
	if metrics, err = os.Create(filepath.Join(folder, runfolder.MetricsFile)); err != nil {
		return nil, err
	}
	if err := r.writeExperiment(folder); err != nil {
		// otherwise the folder would be neither a run nor empty
		return nil, errors.Join(err, metrics.Close(), clearFolder(folder))
	}
	return metrics, nil
}

// logs reports whether an event gets a line in metrics.jsonl: of steps, one in logging_steps.
func (r *Run) logs(event any) bool {
	step, ok := event.(multitask.Step)
	return !ok || step.Number%r.experiment().Training.LoggingSteps == 0 || step.Number == 1 || step.Number == step.Of
}

func (r *Run) writeExperiment(folder string) error {
	var text bytes.Buffer
	if err := r.experiment().Write(&text, folder); err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), text.Bytes())
}

// plan returns the training plan of the experiment for a run folder.
func (r *Run) plan(folder string) (multitask.Plan, error) {
	t := r.experiment().Training
	weighting, err := t.Weighting.Build(r.Model.WeightingEnv(r.experiment().Seed))
	if err != nil {
		return multitask.Plan{}, err
	}
	sampler, err := t.Sampling.Build(r.Model.SamplerEnv(weighting))
	if err != nil {
		return multitask.Plan{}, err
	}
	plan := multitask.Plan{
		Seed: r.experiment().Seed, Epochs: t.NumEpochs, MaxSteps: t.MaxSteps,
		BatchSize: t.BatchSize, BatchTokens: t.BatchTokens, Accumulate: t.GradientAccumulationSteps,
		Recompute: t.Recompute, BFloat16: t.Precision == config.BF16,
		Rate: t.LearningRate, WeightDecay: t.WeightDecay, ClipNorm: t.MaxGradNorm,
		WarmupRatio: t.WarmupRatio, WarmupSteps: t.WarmupSteps,
		Sampler: sampler, Weighting: weighting,
		NeverEvaluate: t.EvalStrategy == "no" || !r.evaluated,
		CacheMemory:   int64(t.CacheMemory) << 20,
	}
	if !t.NoCacheFile {
		plan.CacheFile = func() (multitask.CacheFile, error) { return openStates(cmp.Or(t.CacheFolder, folder)) }
	}
	if err := plan.CheckWeighting(r.Model); err != nil {
		return multitask.Plan{}, &plugin.Mistake{Place: t.Weighting.Place,
			Err: fmt.Errorf("weighting %q: %w", t.Weighting.Type, err)}
	}
	if t.EvalStrategy == "steps" {
		plan.EvaluateEvery = t.EvalSteps
	}
	return plan, nil
}
