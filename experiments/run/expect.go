package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/teach"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Expectation is what a training run takes, as far as that is known before it.
type Expectation struct {
	Steps, Evaluations int
	Memory             memory.Estimate
	Disk               Disk
	Measured           int // number of steps that Time and Warnings come from
	Warnings           []train.Warning
	Time               time.Duration // of all steps and evaluations; early stopping, or cached states, may shorten it
	Teachers           teach.Cost    // before them; Time has that of teachers that are trained
}

// Limits of what Expect measures.
const (
	mostMeasured    = 10 // steps
	longestMeasured = 10 * time.Second
)

// Expect estimates what Train will take, by a few steps that change the weights: the run cannot be trained afterwards.
// Where the machine has too little memory, nothing is measured, and tooLarge says why.
func (r *Run) Expect(ctx context.Context) (e Expectation, tooLarge, err error) {
	if e, tooLarge, err = r.expect(ctx, longestMeasured); err != nil {
		return e, nil, err
	}
	e.Disk = r.disk(e)
	e.Warnings = append(e.Warnings, e.Disk.lacks(r.experiment().Training)...)
	e.Warnings = append(e.Warnings, r.untaught()...)
	return e, tooLarge, nil
}

func (r *Run) expect(ctx context.Context, longest time.Duration) (e Expectation, tooLarge, err error) {
	// length and memory
	data := r.data()
	if e.Steps, e.Evaluations, e.Warnings, err = r.plan.Length(r.Model, data); err != nil {
		return e, nil, err
	}
	if e.Memory, err = r.trainingNeed(data); err != nil {
		return e, nil, err
	}
	if tooLarge = r.fits(e.Memory); tooLarge != nil {
		return e, tooLarge, nil
	}
	defer r.machine.LimitHeap(e.Memory.Outside)()

	// steps; the first one also allocates memory
	plan := r.plan
	plan.UnfreezeEvery = 0 // the time of a step in which all layers learn
	training, err := train.New(r.Model, data, plan)
	if err != nil {
		return e, nil, err
	}
	defer training.Close()
	var times []time.Duration
	for sum := time.Duration(0); e.Measured < min(mostMeasured, e.Steps) && sum < longest; e.Measured++ {
		done, err := training.Step(ctx)
		if err != nil {
			return e, nil, err
		}
		times, sum = append(times, done.Time), sum+done.Time
	}
	step := usualTime(times)
	e.Warnings = append(e.Warnings, training.FinalWarnings()...)

	// evaluations
	var evaluation time.Duration
	for g := range r.Data.Groups {
		if r.plan.NeverEvaluate {
			continue
		}
		of, err := r.groupTime(ctx, &r.Model.Groups[g], data[g].Dev)
		if err != nil {
			return e, nil, err
		}
		evaluation += of
	}
	old, err := r.oldTime(ctx, e.Evaluations, r.groupTime)
	if err != nil {
		return e, nil, err
	}
	e.Time = duration(float64(e.Steps)*float64(step) + float64(e.Evaluations)*float64(evaluation) + float64(old))
	if r.teachers != nil {
		if e.Teachers, err = r.teachers.Cost(ctx); err != nil {
			return e, nil, err
		}
		// those that are trained alone read as many batches of their own texts
		alone := float64(e.Time) * float64(e.Teachers.Alone) / float64(len(r.experiment().Tasks))
		e.Time = duration(float64(e.Time) + alone + float64(e.Teachers.Time))
	}
	return e, nil, nil
}

// usualTime returns the median of the times of steps after the first, or that of the first: other programs of the
// machine make some steps many times as long.
func usualTime(times []time.Duration) time.Duration {
	if len(times) > 1 {
		times = times[1:]
	}
	times = slices.Sorted(slices.Values(times))
	if len(times) == 0 {
		return 0
	}
	return times[len(times)/2]
}

type groupTimer func(ctx context.Context, g *multitask.Group, dev []*corpus.Example) (time.Duration, error)

// oldTime estimates the time of measuring what tasks of the base run lose, in a training with a number of evaluations:
// all before it, and those that are not rehearsed at each evaluation too, which may be the best. timeOf is groupTime.
func (r *Run) oldTime(ctx context.Context, evaluations int, timeOf groupTimer) (all time.Duration, err error) {
	if r.Growth == nil {
		return 0, nil
	}
	atEnd := 0 // where no evaluation has the rehearsed tasks
	if evaluations == 0 {
		atEnd = 1
	}
	for g, group := range r.Data.Groups {
		if !slices.ContainsFunc(group.Tasks, r.isKept) {
			continue
		}
		of, err := timeOf(ctx, &r.Model.Groups[g], group.Examples[config.Dev])
		if err != nil {
			return 0, err
		}
		all += time.Duration(1+atEnd) * of
	}
	for g := range r.built.Kept {
		of, err := timeOf(ctx, &r.built.Kept[g], r.Data.Kept.Groups[g].Examples[config.Dev])
		if err != nil {
			return 0, err
		}
		all = duration(float64(all) + (1+float64(max(evaluations, atEnd)))*float64(of))
	}
	return all, nil
}

// duration returns a time in nanoseconds, at most the longest that there is: files may have any number of steps.
func duration(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}

// groupTime estimates the time of evaluating a group on dev by some of its examples.
func (r *Run) groupTime(ctx context.Context, g *multitask.Group, dev []*corpus.Example) (time.Duration, error) {
	if len(dev) == 0 {
		return 0, nil
	}
	t := r.experiment().Training
	batch, start := dev, time.Now()
	if len(dev)/2 > t.BatchSize {
		batch = dev[:2*t.BatchSize]
	}
	model := multitask.Cached{Model: r.Model}
	if _, err := model.Evaluate(ctx, g, batch, t.BatchSize, t.BatchTokens, nil); err != nil {
		return 0, err
	}
	tokens := float64(multitask.SizeOf(dev...).Tokens) / float64(max(1, multitask.SizeOf(batch...).Tokens))
	return time.Duration(tokens * float64(time.Since(start))), nil
}

// RateTest is a learning rate range test (Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section
// 3.3): the rate grows exponentially from step to step, until the loss diverges.
type RateTest struct {
	From, To float64 // rates of the first and the last step
	Steps    int     // at least 10; 0: 100, and 25 more for each further group
}

// Check returns an error if the test is none that can be run.
func (t RateTest) Check() error {
	const from, to, steps = plugin.Argument("from"), plugin.Argument("to"), plugin.Argument("steps")
	switch {
	case !(t.From > 0):
		return fmt.Errorf("%w %v: want a rate above 0", from, t.From)
	case !(t.To > t.From) || t.To > 1e6:
		return fmt.Errorf("%w %v: want a rate above that of %w, %v, and at most 1e6", to, t.To, from, t.From)
	case t.Steps != 0 && (t.Steps < 10 || t.Steps > 1e6):
		return fmt.Errorf("%w %d: want a number from 10 to 1000000", steps, t.Steps)
	}
	return nil
}

// FindRate runs a test with the run's data, optimizer and rates of layers and heads, which keep their ratio to the
// learning rate. It changes the weights, so that the run cannot be trained afterwards, and writes no file. It calls
// progress after each step. At the end it closes the files of r.Data.
func (r *Run) FindRate(ctx context.Context, test RateTest, progress func(done, of int)) (events.RateCurve, error) {
	defer r.Data.Close()
	defer r.teachers.Close()

	if err := test.Check(); err != nil {
		return events.RateCurve{}, err
	}
	if test.Steps == 0 {
		test.Steps = 75 + 25*len(r.Model.Groups)
	}

	// memory
	data := r.data()
	if _, err := r.checkMemory(data); err != nil {
		return events.RateCurve{}, err
	}
	defer r.machine.LimitHeap(0)()

	if r.plan.Optimizer.ComputedRate() != nil {
		return events.RateCurve{}, &plugin.Mistake{Place: r.experiment().Place("training.optimizer"),
			Err: errors.New("training: optimizer: it computes the learning rate, so that there is none to find")}
	}
	training, err := train.New(r.Model, data, r.plan.RangeTest(test.From, test.To, test.Steps))
	if err != nil {
		return events.RateCurve{}, err
	}
	defer training.Close()

	// steps, up to the one that diverges
	curve := events.RateCurve{}
	for done := 1; !training.Done() && !curve.Diverged; done++ {
		step, err := training.Step(ctx)
		var bad *multitask.BadStep
		switch {
		case errors.As(err, &bad) && done == 1:
			bad.Remedy = multitask.NoRemedy // no rate, and no option that the test goes by
			return curve, fmt.Errorf("step 1: %w", bad)
		case errors.As(err, &bad):
			curve.Diverged = true
		case err != nil:
			return curve, err
		default:
			curve.Add(step)
		}
		progress(done, test.Steps)
	}
	return curve, nil
}

func (r *Run) trainingNeed(data []multitask.Data) (memory.Estimate, error) {
	plan := r.plan
	sizes, err := plan.Sizes(r.Model, data)
	if err != nil {
		return memory.Estimate{}, err
	}
	n := memory.Estimate{Weights: memory.Weights(r.Model), Shards: plan.Shards}
	n.Batch, n.Activations = r.Model.Largest(sizes, encoders.Workload{Training: true, Recompute: plan.Recompute})
	_, n.Recomputed = r.Model.Largest(sizes, encoders.Workload{Training: true, Recompute: true})
	of := plan.Memory(r.Model, n.Batch.Tokens)
	n.Gradients, n.Optimizer, n.Average = of.Gradients, of.Optimizer, of.Average
	n.Messages, n.Outside = of.Messages, of.Messages+of.Moved
	n.Activations, n.Recomputed = multitask.Reserve(n.Activations), multitask.Reserve(n.Recomputed)
	tokens := int64(0)
	for _, s := range sizes {
		tokens += int64(s.Tokens)
	}
	if !plan.NeverEvaluate {
		var dev []multitask.Size
		for _, d := range data {
			dev = append(dev, multitask.EvaluationSizes(d.Dev, plan.BatchSize, plan.BatchTokens)...)
		}
		_, n.Evaluation = r.Model.Largest(dev, encoders.Workload{})
		n.Evaluation = multitask.Reserve(n.Evaluation)
		for _, s := range dev {
			tokens += int64(s.Tokens)
		}
	}
	if r.writes() {
		n.Checkpoint = r.copiesNeed(n.Weights, of)
	}
	if r.Model.Frozen() {
		if plan.Ranks != nil {
			_, ranks := plan.Ranks.Rank()
			tokens /= int64(ranks) // each keeps those of its texts
		}
		// of one layer: fusions that read all keep more
		states := 4 * tokens * int64(r.Model.Encoder.Describe().Width)
		n.States = min(plan.CacheMemory, states)
		if t := r.experiment().Training; !t.NoCacheFile && t.CacheFolder == "" {
			n.StatesFile = states - n.States
		}
	}
	n.Moving = max(0, of.Moved-n.Optimizer-n.Activations-n.Evaluation-n.States-n.Checkpoint)
	return n, nil
}

// copiesNeed estimates the copies that a checkpoint makes: of the model, as far as it is saved, and of what a snapshot
// has. The parameters take so many bytes.
func (r *Run) copiesNeed(weights int64, n train.Memory) int64 {
	copies := paramBytes(checkpoint.OwnParams(r.Model), allParams)
	if r.copiesEncoder() {
		kept := func(w *nn.Param) bool { return w.Frozen && w.Table } // see encoders.Description.Save
		copies = weights - paramBytes(multitask.EncoderParams(r.Model.Params).All(), kept) -
			paramBytes(r.Model.ResidentParams(), kept)
	}
	if r.experiment().Training.SaveStrategy != config.SaveNever {
		copies += r.stateBytes(n)
		copies += paramBytes(r.Model.ResidentParams(), (*nn.Param).Learns) // what of a device is fetched at once
		if n.Optimizer < n.State {
			copies += n.State // which is collected from all processes before it is copied
		}
	}
	return copies
}
