package experiments

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

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Files and folders of a run.
const (
	experimentFile = "experiment.yaml"
	metricsFile    = "metrics.jsonl"
	bestDir        = "best"
	lastDir        = "last"
	tasksDir       = "tasks"
)

// RunFolder is where the run goes: out if it is given, else the file's own output_dir, else runs/PROJECT_NAME.
func (e *Experiment) RunFolder(out string) string {
	switch {
	case out != "":
		return out
	case e.Training.OutputDir != "":
		return e.Training.OutputDir
	}
	return filepath.Join("runs", e.ProjectName)
}

// Claim makes sure that folder can take the run of the experiment: one that holds a run is refused without force, and one
// that holds other things, or of whose run the experiment's model is made, always.
func (e *Experiment) Claim(folder string, force bool) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file; name a folder by --out", folder)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !isRun(folder):
		return fmt.Errorf("%s holds files, but no run: name another folder by --out", folder)
	case !force:
		return fmt.Errorf("%s holds a run: name another folder by --out, or replace it by --force", folder)
	}
	return checkBase(folder, e.Model.BaseModel.Name)
}

// isRun tells whether a folder holds a run: its experiment file, which may be anyone's, and figures or a model beside it.
func isRun(folder string) bool {
	there := func(parts ...string) bool { return isThere(filepath.Join(append([]string{folder}, parts...)...)) }
	return there(experimentFile) && (there(metricsFile) ||
		there(bestDir, modelFile) || there(bestDir+oldSuffix, modelFile) || there(lastDir, modelFile) || there(lastDir+oldSuffix, modelFile))
}

// trained are what a run leaves in its folder besides its experiment file.
var trained = []string{
	experimentFile + newSuffix, tasksDir, bestDir, bestDir + newSuffix, bestDir + oldSuffix, lastDir, lastDir + newSuffix, lastDir + oldSuffix, metricsFile,
}

// checkBase refuses a base model that is part of the run in folder, and would go with it.
func checkBase(folder, base string) error {
	if base == "" {
		return nil
	}
	model, err := real(base)
	if err != nil {
		return err
	}
	for _, name := range trained {
		part, err := real(filepath.Join(folder, name))
		if err != nil {
			continue // it is not there
		}
		if within, err := filepath.Rel(part, model); err == nil && filepath.IsLocal(within) {
			return fmt.Errorf("%s holds a run that the base model is part of, %s: name another folder by --out, or copy the model out of it", folder, base)
		}
	}
	return nil
}

// clear takes away what a run left in folder, and nothing else. The experiment file, which says that there is a run,
// goes last.
func clear(folder string) error {
	if err := clearStates(folder); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(trained), experimentFile) {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Train trains the run and leaves it in folder, where an earlier run is replaced, if the machine has the memory. It
// reports each multitask.Step, multitask.Evaluation and multitask.Remark to observe.
func (r *Run) Train(ctx context.Context, folder string, observe func(event any) error) (Done, error) {
	start := time.Now()
	if err := checkBase(folder, r.encoderPath); err != nil {
		return Done{}, err
	}
	plan, err := r.plan(folder)
	if err != nil {
		return Done{}, err
	}
	data := make([]multitask.Data, len(r.Texts))
	for g, texts := range r.Texts {
		data[g] = multitask.Data{Train: texts.Examples[Train], Dev: texts.Examples[Dev]}
	}
	need, err := r.trainingNeed(plan, data)
	if err != nil {
		return Done{}, err
	}
	if err := r.fits(need); err != nil {
		return Done{}, err
	}
	defer r.limitMemory()()

	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Done{}, err
	}
	if err := clear(folder); err != nil {
		return Done{}, err
	}
	metrics, err := os.Create(filepath.Join(folder, metricsFile))
	if err != nil {
		return Done{}, err
	}
	if err := r.writeExperiment(folder); err != nil {
		return Done{}, errors.Join(err, metrics.Close(), clear(folder)) // what is left would be no run, nor empty
	}
	defer metrics.Close()

	keep := keeper{run: r, folder: folder, selection: r.Experiment.Training.selection(), taskBest: map[string]float64{}}
	lines := json.NewEncoder(metrics)
	err = multitask.Train(ctx, r.Model, data, plan, func(event any) error {
		if r.logs(event) {
			if err := lines.Encode(Line(event)); err != nil {
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
		return Done{}, err
	}

	if !keep.any {
		if err := keep.without(); err != nil {
			return Done{}, err
		}
	}
	done := Done{Best: keep.best, Metric: keep.selection.metric, Value: keep.value, Seconds: time.Since(start).Seconds(), Folder: folder}
	if err := lines.Encode(Line(done)); err != nil {
		return Done{}, err
	}
	return done, metrics.Close()
}

// logs tells whether an event gets a line in metrics.jsonl: steps do each logging_steps.
func (r *Run) logs(event any) bool {
	step, ok := event.(multitask.Step)
	return !ok || step.Number%r.Experiment.Training.LoggingSteps == 0 || step.Number == 1 || step.Number == step.Of
}

func (r *Run) writeExperiment(folder string) error {
	var text bytes.Buffer
	if err := r.Experiment.Write(&text, folder); err != nil {
		return err
	}
	return writeWhole(filepath.Join(folder, experimentFile), text.Bytes())
}

// plan is how the experiment says to train in a run folder.
func (r *Run) plan(folder string) (multitask.Plan, error) {
	t := r.Experiment.Training
	var names []string
	for _, g := range r.Model.Groups {
		names = append(names, g.Name)
	}
	weighting, err := t.Weighting.Build(r.Model.WeightingSite(r.Experiment.Seed))
	if err != nil {
		return multitask.Plan{}, err
	}
	_, all := weighting.(multitask.GradientWeighting)
	sampler, err := t.Sampling.Build(multitask.SamplerSite{Groups: names, All: all})
	if err != nil {
		return multitask.Plan{}, err
	}
	plan := multitask.Plan{
		Seed: r.Experiment.Seed, Epochs: t.NumEpochs, MaxSteps: t.MaxSteps,
		BatchSize: t.BatchSize, BatchTokens: t.BatchTokens, Accumulate: t.GradientAccumulationSteps, Recompute: t.Recompute, BFloat16: t.Precision == bf16,
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
		err = fmt.Errorf("weighting %q: %w", t.Weighting.Type, err)
		return multitask.Plan{}, &plugin.Mistake{Place: t.Weighting.Place, Err: err}
	}
	if t.EvalStrategy == "steps" {
		plan.EvaluateEvery = t.EvalSteps
	}
	return plan, nil
}

// selection is what the best model is chosen by.
func (t Training) selection() selection {
	if t.MetricForBestModel == "" {
		return selection{metric: "eval_overall", higher: true}
	}
	return selection{metric: t.MetricForBestModel, higher: t.GreaterIsBetter}
}

// keeper keeps checkpoints of a run: the last, the best, and the best of each task.
type keeper struct {
	run       *Run
	folder    string
	selection selection

	any      bool // whether there has been an evaluation
	best     multitask.Evaluation
	value    float64 // of the best
	worse    int     // evaluations since
	taskBest map[string]float64
}

// evaluated saves the model as the last, and as the best of what it is the best of. It ends training when the best
// has not been bettered for the experiment's patience.
func (k *keeper) evaluated(e multitask.Evaluation) error {
	value, err := k.selection.value(e.Groups)
	if err != nil {
		return err
	}
	if err := k.run.save(filepath.Join(k.folder, lastDir)); err != nil {
		return err
	}
	if !k.any || k.selection.better(value, k.value) {
		k.best, k.value, k.worse = e, value, 0
		if err := link(filepath.Join(k.folder, lastDir), filepath.Join(k.folder, bestDir)); err != nil {
			return err
		}
	} else {
		k.worse++
	}
	for _, g := range e.Groups {
		for _, task := range g.Tasks {
			figure, judged := taskFigure(task)
			if best, have := k.taskBest[task.Task]; !judged || have && figure <= best {
				continue
			}
			k.taskBest[task.Task] = figure
			if err := link(filepath.Join(k.folder, lastDir), filepath.Join(k.folder, tasksDir, task.Task)); err != nil {
				return err
			}
		}
	}
	k.any = true
	if patience := k.run.Experiment.Training.EarlyStoppingPatience; patience > 0 && k.worse >= patience {
		return multitask.ErrStop
	}
	return nil
}

// without saves a model that was never evaluated: the last is the best.
func (k *keeper) without() error {
	if err := k.run.save(filepath.Join(k.folder, lastDir)); err != nil {
		return err
	}
	return link(filepath.Join(k.folder, lastDir), filepath.Join(k.folder, bestDir))
}
