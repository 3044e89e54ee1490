package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Folder is where the run of an experiment goes: out if it is given, else the file's own output_dir, else
// runs/PROJECT_NAME.
func Folder(e *config.Experiment, out string) string {
	switch {
	case out != "":
		return out
	case e.Training.OutputDir != "":
		return e.Training.OutputDir
	}
	return filepath.Join("runs", e.ProjectName)
}

// Claim makes sure that folder can take the run of an experiment: one that holds a run is refused without force, and one
// that holds other things, or of whose run the experiment's model is made, always.
func Claim(e *config.Experiment, folder string, force bool) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file; name a folder by --out", folder)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !runfolder.IsRun(folder):
		return fmt.Errorf("%s holds files, but no run: name another folder by --out", folder)
	case !force:
		return fmt.Errorf("%s holds a run: name another folder by --out, or replace it by --force", folder)
	}
	return checkBase(folder, e.Model.BaseModel.Name)
}

// trained are what a run leaves in its folder besides its experiment file.
var trained = []string{
	runfolder.ExperimentFile + runfolder.NewSuffix, runfolder.TasksDir, runfolder.BestDir, runfolder.BestDir + runfolder.NewSuffix, runfolder.BestDir + runfolder.OldSuffix, runfolder.LastDir, runfolder.LastDir + runfolder.NewSuffix, runfolder.LastDir + runfolder.OldSuffix, runfolder.MetricsFile,
}

// checkBase refuses a base model that is part of the run in folder, and would go with it.
func checkBase(folder, base string) error {
	if base == "" {
		return nil
	}
	model, err := runfolder.RealPath(base)
	if err != nil {
		return err
	}
	for _, name := range trained {
		part, err := runfolder.RealPath(filepath.Join(folder, name))
		if err != nil {
			continue // it is not there
		}
		if within, err := filepath.Rel(part, model); err == nil && filepath.IsLocal(within) {
			return fmt.Errorf("%s holds a run that the base model is part of, %s: name another folder by --out, or copy the model out of it", folder, base)
		}
	}
	return nil
}

// clearFolder takes away what a run left in folder, and nothing else. The experiment file, which says that there is a run,
// goes last.
func clearFolder(folder string) error {
	if err := clearStates(folder); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(trained), runfolder.ExperimentFile) {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Train trains the run and leaves it in folder, where an earlier run is replaced, if the machine has the memory. It
// reports each multitask.Step, multitask.Evaluation and multitask.Remark to observe.
func (r *Run) Train(ctx context.Context, folder string, observe func(event any) error) (report.Done, error) {
	start := time.Now()
	if err := checkBase(folder, r.built.Encoder); err != nil {
		return report.Done{}, err
	}
	plan, err := r.plan(folder)
	if err != nil {
		return report.Done{}, err
	}
	data := make([]multitask.Data, len(r.Data.Groups))
	for g, group := range r.Data.Groups {
		data[g] = multitask.Data{Train: group.Examples[config.Train], Dev: group.Examples[config.Dev]}
	}
	need, err := r.trainingNeed(plan, data)
	if err != nil {
		return report.Done{}, err
	}
	if err := r.machine.fits(need, r.experiment().Place("training.batch_size")); err != nil {
		return report.Done{}, err
	}
	defer r.machine.limitMemory()()

	if err := os.MkdirAll(folder, 0o755); err != nil {
		return report.Done{}, err
	}
	if err := clearFolder(folder); err != nil {
		return report.Done{}, err
	}
	metrics, err := os.Create(filepath.Join(folder, runfolder.MetricsFile))
	if err != nil {
		return report.Done{}, err
	}
	if err := r.writeExperiment(folder); err != nil {
		return report.Done{}, errors.Join(err, metrics.Close(), clearFolder(folder)) // what is left would be no run, nor empty
	}
	defer metrics.Close()

	keep := keeper{run: r, folder: folder, selection: selectionOf(r.experiment().Training), taskBest: map[string]float64{}}
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
			return keep.evaluated(evaluation)
		}
		return nil
	})
	if err != nil {
		return report.Done{}, err
	}

	if !keep.any {
		if err := keep.without(); err != nil {
			return report.Done{}, err
		}
	}
	done := report.Done{Best: keep.best, Metric: keep.selection.Metric, Value: keep.value, Seconds: time.Since(start).Seconds(), Folder: folder}
	if err := lines.Encode(report.Line(done)); err != nil {
		return report.Done{}, err
	}
	return done, metrics.Close()
}

// logs tells whether an event gets a line in metrics.jsonl: steps do each logging_steps.
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

// plan is how the experiment says to train in a run folder.
func (r *Run) plan(folder string) (multitask.Plan, error) {
	t := r.experiment().Training
	var names []string
	for _, g := range r.Model.Groups {
		names = append(names, g.Name)
	}
	weighting, err := t.Weighting.Build(r.Model.WeightingSite(r.experiment().Seed))
	if err != nil {
		return multitask.Plan{}, err
	}
	_, all := weighting.(multitask.GradientWeighting)
	sampler, err := t.Sampling.Build(multitask.SamplerSite{Groups: names, All: all})
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
		NeverEvaluate: t.EvalStrategy == "no" || !r.judged,
		CacheMemory:   int64(t.CacheMemory) << 20,
	}
	if !t.NoCacheFile {
		plan.CacheFile = func() (multitask.CacheFile, error) { return openStates(cmp.Or(t.CacheFolder, folder)) }
	}
	if err := plan.CheckWeighting(r.Model); err != nil {
		return multitask.Plan{}, &plugin.Mistake{Place: t.Weighting.Place, Err: fmt.Errorf("weighting %q: %w", t.Weighting.Type, err)}
	}
	if t.EvalStrategy == "steps" {
		plan.EvaluateEvery = t.EvalSteps
	}
	return plan, nil
}

// selectionOf is what the best model is chosen by.
func selectionOf(t config.Training) report.Selection {
	if t.MetricForBestModel == "" {
		return report.Selection{Metric: "eval_overall", Higher: true}
	}
	return report.Selection{Metric: t.MetricForBestModel, Higher: t.GreaterIsBetter}
}

// keeper keeps checkpoints of a run: the last, the best, and the best of each task.
type keeper struct {
	run       *Run
	folder    string
	selection report.Selection

	any      bool // whether there has been an evaluation
	best     multitask.Evaluation
	value    float64 // of the best
	worse    int     // evaluations since
	taskBest map[string]float64
}

// evaluated saves the model as the last, and as the best of what it is the best of. It ends training when the best
// has not been bettered for the experiment's patience.
func (k *keeper) evaluated(e multitask.Evaluation) error {
	value, err := k.selection.Value(e.Groups)
	if err != nil {
		return err
	}
	if err := k.run.save(filepath.Join(k.folder, runfolder.LastDir)); err != nil {
		return err
	}
	if !k.any || k.selection.Better(value, k.value) {
		k.best, k.value, k.worse = e, value, 0
		if err := runfolder.Link(filepath.Join(k.folder, runfolder.LastDir), filepath.Join(k.folder, runfolder.BestDir)); err != nil {
			return err
		}
	} else {
		k.worse++
	}
	for _, g := range e.Groups {
		for _, task := range g.Tasks {
			figure, judged := report.TaskFigure(task)
			if best, have := k.taskBest[task.Task]; !judged || have && figure <= best {
				continue
			}
			k.taskBest[task.Task] = figure
			if err := runfolder.Link(filepath.Join(k.folder, runfolder.LastDir), filepath.Join(k.folder, runfolder.TasksDir, task.Task)); err != nil {
				return err
			}
		}
	}
	k.any = true
	if patience := k.run.experiment().Training.EarlyStoppingPatience; patience > 0 && k.worse >= patience {
		return multitask.ErrStop
	}
	return nil
}

// without saves a model that was never evaluated: the last is the best.
func (k *keeper) without() error {
	if err := k.run.save(filepath.Join(k.folder, runfolder.LastDir)); err != nil {
		return err
	}
	return runfolder.Link(filepath.Join(k.folder, runfolder.LastDir), filepath.Join(k.folder, runfolder.BestDir))
}
