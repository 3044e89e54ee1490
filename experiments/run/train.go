package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// Train trains the run, once, and writes it to folder, in place of an earlier run unless r.Keep is set. The earlier run
// is removed with the first checkpoint; if training ends before that, it is left as it was. Train returns an error if
// the machine has too little memory, or if another training writes to the folder; the result is then what the run has
// come to. It reports each train.Step, train.Evaluation and train.Warning to observe. At the end it closes
// the files of r.Data.
func (r *Run) Train(
	ctx context.Context, folder string, observe func(event train.Event) error,
) (done events.Done, err error) {
	defer r.Data.Close()
	defer r.teachers.Close()

	// memory of training
	if err := runfolder.CheckBase(folder, "the base model", r.built.EncoderPath); err != nil {
		return events.Done{}, err
	}
	data := r.data()
	need, err := r.checkMemory(data)
	if err != nil {
		return events.Done{}, err
	}
	defer r.machine.LimitHeap(need.Outside)()

	// sums of a frozen encoder's files, before they can change
	if err := r.sumEncoder(r.reading(ctx)); err != nil {
		return events.Done{}, err
	}

	if err := r.checkRanks(folder); err != nil {
		return events.Done{}, err
	}
	if !r.writes() {
		return r.trainUnsaved(ctx, folder, data)
	}

	// run folder, which is this training's alone
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		return events.Done{}, err
	}
	defer lock.Release()
	defer func() {
		if settled := runfolder.Settle(folder); settled != nil {
			err = errors.Join(err, settled)
		}
	}()
	var metrics *events.Log
	if r.resumed != nil {
		metrics, err = r.resumed.OpenMetrics(r.reading(ctx))
	} else {
		metrics, err = r.replaceFolder(folder, lock)
	}
	if err != nil {
		return events.Done{}, err
	}
	defer metrics.Close()

	// training
	done, err = r.trainAndSave(ctx, folder, lock, data, metrics, need.Checkpoint, observe)
	if done, err = atPlace(lock, done, err); err != nil {
		metrics.Event(events.Ended{Done: done, Err: err}) // the disk may be full: err is what matters
		return done, err
	}
	return done, metrics.Close()
}

// trainAndSave trains the run in a folder, and writes checkpoints and metrics. A checkpoint copies so many bytes.
func (r *Run) trainAndSave(
	ctx context.Context, folder string, lock *runfolder.Lock, data []multitask.Data, metrics *events.Log,
	copies int64, observe func(event train.Event) error,
) (events.Done, error) {
	if err := r.teach(ctx, folder, metrics, observe); err != nil {
		return untaught(folder, err), err
	}
	training, err := train.New(r.Model, data, r.planIn(folder))
	if err != nil {
		return events.Done{Folder: folder}, err
	}
	defer training.Close()
	c := r.newCheckpointer(lock, folder, training, metrics)
	if r.resumed != nil {
		if err := r.resumed.Restore(training); err != nil {
			return events.Done{}, err // the checkpoint is refused
		}
		c.stateAt = r.resumed.Checkpoint
		if done, err := r.restore(r.reading(ctx), c); err != nil {
			return done, err
		}
		if r.Restored != nil {
			r.Restored(report.State{Step: c.last.Number, Of: c.last.Of}, r.anew(training))
		}
	}
	if err := r.checkTrainings(training); err != nil { // of several processes
		return c.done(), err
	}
	c.copies.Prepare(int(copies / 4)) // after the memory of the snapshot is free

	// steps and evaluations
	record := r.recorder(observe, c)
	err = c.old.occasion(func() error { return r.beforeFirstStep(ctx, c, record) })
	if r.plan.Ranks != nil {
		err = (&agreement{ranks: r.plan.Ranks, training: training, record: record}).run(ctx, err, c.saves)
	} else if err == nil {
		err = training.Complete(ctx, record)
	}
	switch {
	case errors.Is(err, train.ErrStop):
		err = c.finish()
	case errors.Is(err, context.Canceled):
		err = errors.Join(err, c.interrupted())
	case err != nil:
		err = errors.Join(err, c.wait())
	default:
		err = c.finish()
	}
	r.warnReplaced(err == nil, record) // after the checkpoint, which is resumed without these lines
	if err != nil {
		return c.done(), err
	}
	if err := r.recordOtherTexts(ctx, c, record); err != nil {
		return c.done(), err
	}
	return c.end()
}

// anew describes what a training that had come to its end goes on with, "" for another one.
func (r *Run) anew(training *train.Training) string {
	if !r.resumed.Ended {
		return ""
	}
	schedule := ", as the optimizer computes it,"
	if r.plan.Optimizer.ComputedRate() == nil {
		schedule = ", by lr_scheduler: " + r.plan.Schedule.Name()
	}
	return fmt.Sprintf("the training had ended: the learning rate goes on from %.3g%s over all %s; the optimizer's "+
		"state begins anew", training.NextRate(), schedule, plugin.Count(training.Steps(), "step"))
}

// atPlace returns how far a training came, and its error, where the folder of lock may have been moved meanwhile: what
// else has failed follows from that, and nothing at its path is the run's. Neither are checkpoints that were removed.
func atPlace(lock *runfolder.Lock, done events.Done, err error) (events.Done, error) {
	moved := lock.Check()
	if moved == nil || err == nil {
		if err != nil && done.Resume != "" && !runfolder.IsCheckpoint(runfolder.Whole(done.Resume)) {
			done.Resume = ""
		}
		if err != nil && done.Best.Step > 0 && !runfolder.HasBest(done.Folder) {
			if done.Best = (train.Evaluation{}); done.Resume == "" {
				done.Folder = "" // else what is left in it would be said to be of the run from before
			}
		}
		return done, err
	}
	done.Folder, done.Resume, done.Best = "", "", train.Evaluation{}
	if errors.Is(err, context.Canceled) {
		return done, errors.Join(err, moved)
	}
	return done, moved
}

// warnReplaced records a warning of each file of streamed training data that was replaced or deleted during training,
// which has come to its end or not. A warning that cannot be recorded does not change the result of the training.
func (r *Run) warnReplaced(done bool, record func(event train.Event) error) {
	advice := "; put that one back to resume the training"
	if done {
		advice = ""
	}
	for _, path := range r.Data.Replaced() {
		err := record(train.Warning{Text: path + ": the file was replaced or deleted while training read it, by " +
			"stream: true: the model has learned from the file as it was" + advice})
		if err != nil {
			return
		}
	}
}

// beforeFirstStep records a device that the training begins on, what has become of bests where a training is resumed,
// and what a new one takes over from a base run, whose tasks it evaluates. Its error is train.ErrStop where there is no
// step.
func (r *Run) beforeFirstStep(ctx context.Context, c *checkpointer, record func(event train.Event) error) (err error) {
	device, name := r.Model.Encoder.Describe().Device, r.deviceName()
	was := "" // the processor
	if r.resumed != nil {
		was = r.resumed.State.Device
	}
	if name != was {
		if err := record(events.Device{Device: cmp.Or(device, encoders.CPU), Name: name}); err != nil {
			return err
		}
	}
	for _, text := range c.mended {
		if err := record(train.Warning{Text: text}); err != nil {
			return err
		}
	}
	if r.Growth != nil && r.resumed == nil {
		if err := record(*r.Growth); err != nil {
			return err
		}
		if c.bests.Old, err = c.old.before(ctx); err != nil {
			return err
		}
	}
	return c.ended()
}

// recorder returns a function that writes a line of metrics.jsonl for an event, and passes it to observe, and then to
// the checkpointer.
func (r *Run) recorder(observe func(event train.Event) error, c *checkpointer) func(event train.Event) error {
	log := func(event train.Event) error {
		if !r.logs(event) {
			return nil
		}
		return c.metrics.Event(event)
	}
	return func(event train.Event) error {
		switch e := event.(type) {
		case train.Step:
			if err := log(e); err != nil {
				return err
			}
			before := c.last
			c.last = e
			if err := observe(e); err != nil {
				return err
			}
			return c.stepped(before)
		case train.Evaluation:
			e.Weighted = c.selection.Weighted(e.Groups)
			return c.old.occasion(func() error {
				if err := log(e); err != nil {
					return err
				}
				if err := observe(e); err != nil {
					return err
				}
				if c.bests.Evaluations == 0 && r.Growth == nil { // metrics.jsonl has the metrics, which say it all
					for _, w := range r.perfect(e) {
						if err := observe(w); err != nil {
							return err
						}
					}
				}
				return c.evaluated(e)
			})
		}
		if err := log(event); err != nil {
			return err
		}
		return observe(event)
	}
}

// perfect returns a warning of the heads whose main metric on dev is 100 % in an evaluation of the first epoch, if
// there are any. Of fewer examples than some 20, all may be right by chance.
func (r *Run) perfect(e train.Evaluation) []train.Warning {
	const few = 20
	if e.Epoch > 1 {
		return nil
	}
	var found []string
	perWord := false
	for g, group := range e.Groups {
		for i, task := range group.Tasks {
			for _, head := range task.Heads {
				if head.Examples < few || len(head.Metrics) == 0 {
					continue
				}
				if m := head.Metrics[0]; m.Undefined || m.Lower || m.Value != 1 {
					continue
				}
				found = append(found, fmt.Sprintf("task %q: head %q: %s is 100 %% on %d examples", task.Task, head.Head,
					head.Metrics[0].Name, head.Examples))
				number := r.Data.Groups[g].Tasks[i]
				perWord = perWord || r.Data.Tasks[number].Output().PerWord
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	words := ""
	if perWord {
		words = ", or a word has the same tag in every text (data: {tags: FIELD} names the field of the tags)"
	}
	return []train.Warning{{Text: fmt.Sprintf("dev after epoch %.4g: %s; unless the task is as easy, the label stands "+
		"in the text (data: {text: FIELD} names the field that is read), or dev has texts of train (data: {split: "+
		"{by: FIELD}} keeps those that belong together in one split)%s", e.Epoch, strings.Join(found, "; "), words)}}
}

// checkMemory estimates the memory of training, and returns an error if that is more than the machine has.
func (r *Run) checkMemory(data []multitask.Data) (memory.Estimate, error) {
	need, err := r.trainingNeed(data)
	if err != nil {
		return memory.Estimate{}, err
	}
	return need, r.fits(need)
}

func (r *Run) fits(need memory.Estimate) error {
	return r.machine.Fits(need, r.experiment().Place("training.batch_size"))
}

func (r *Run) data() []multitask.Data {
	data := make([]multitask.Data, len(r.Data.Groups))
	for g, group := range r.Data.Groups {
		data[g] = multitask.Data{Train: group.Examples[config.Train], Dev: group.Examples[config.Dev]}
		if group.Stream != nil {
			data[g].Stream = group.Stream
		}
	}
	return data
}

// logs reports whether an event gets a line in metrics.jsonl: of steps, one in logging_steps.
func (r *Run) logs(event train.Event) bool {
	step, ok := event.(train.Step)
	return !ok || step.Bad != nil || step.Number%r.experiment().Training.LoggingSteps == 0 || step.Number == 1 ||
		step.Number == step.Of
}
