package run

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/experiments/teach"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// teach trains the teachers that the run trains itself, and opens the answers of all.
func (r *Run) teach(ctx context.Context, folder string, metrics *events.Log, observe func(train.Event) error) error {
	if r.teachers == nil {
		return nil
	}
	if err := files.CheckKind(filepath.Join(folder, runfolder.TeachersDir), fs.ModeDir); err != nil {
		return err
	}
	for number, task := range r.experiment().Tasks {
		of, alone := r.experiment().TeacherOf(task, folder)
		if !alone || !r.teachers.Needs(number) {
			continue
		}
		run := of.Name
		if err := files.CheckKind(run, fs.ModeDir); err != nil {
			return err
		}
		taught, err := r.trainAlone(ctx, number, run, observe)
		if err == nil && r.resumed == nil && metrics != nil {
			err = metrics.Event(taught)
		}
		if err != nil {
			return fmt.Errorf("teacher of task %q, in %s: %w", task.Name, run, err)
		}
	}
	if err := r.teachers.Open(ctx, folder, r.pass); err != nil {
		return err
	}
	for _, w := range r.teachers.Warnings() {
		if err := observe(train.Warning{Text: w.String()}); err != nil {
			return err
		}
	}
	return nil
}

// untaught returns how far a training came whose teachers have an error: nowhere where one is damaged, which is to be
// mended first.
func untaught(folder string, err error) events.Done {
	if damaged := new(teach.DamagedError); errors.As(err, &damaged) {
		return events.Done{}
	}
	return events.Done{Folder: folder}
}

// trainAlone trains a task alone in a folder, or goes on with that, unless it is done. What was trained by another
// experiment, or on other data, is replaced.
func (r *Run) trainAlone(ctx context.Context, number int, folder string, observe func(train.Event) error) (
	events.Teacher, error) {
	taught := events.Teacher{Task: r.experiment().Tasks[number].Name, Run: folder}
	e, err := r.alone(number)
	if err != nil {
		return taught, err
	}
	state, err := r.aloneState(r.reading(ctx), e, folder)
	if err == nil {
		taught.Before = state == trainedAlone
		err = observe(taught)
	}
	if err != nil || taught.Before {
		return taught, err
	}
	var ready *Run
	if state == begunAlone {
		found, failed := resume.Find(r.reading(ctx), folder)
		if failed != nil {
			return taught, failed
		}
		ready, err = resumeWith(ctx, e, found.Point, r.aloneOptions(), nil)
		if damaged := new(runfolder.Damage); errors.As(err, &damaged) {
			err = &teach.DamagedError{Folder: folder, Err: err}
		}
	} else {
		ready, err = prepareWith(ctx, e, r.aloneOptions(), config.Train, config.Dev)
	}
	if err != nil {
		return taught, err
	}
	defer encoders.Close(ready.Model.Encoder) // its memory, which may be that of a device
	if r.plan.Ranks != nil {
		if err := ready.UseRanks(r.plan.Ranks, r.machine.Local); err != nil {
			return taught, err
		}
	}
	done, err := ready.Train(ctx, folder, observe)
	taught.Metric, taught.Value = done.Metric, done.Value
	return taught, err
}

// What there is of a training of a task alone.
const (
	newAlone     = "new"
	begunAlone   = "begun" // it has a checkpoint to resume from
	trainedAlone = "trained"
)

// aloneState returns what there is in a folder of the training of a task alone, by the same experiment and data: the
// first of several processes finds it, for all of them. What was trained otherwise is removed.
func (r *Run) aloneState(ctx context.Context, e *config.Experiment, folder string) (string, error) {
	find := func() (string, error) {
		key, err := r.aloneKey(ctx, e, folder)
		if err != nil {
			return "", err
		}
		was, err := files.ReadFile(folder+".key", 1<<10)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err != nil && runfolder.IsRun(folder) {
			return "", fmt.Errorf("%s holds a run that is no training's teacher: move it to another folder, or name "+
				"another one for this run by %w", folder, plugin.Argument("out"))
		}
		other := string(was) != key
		if other && r.resumed == nil {
			return newAlone, beginAlone(folder, key)
		}
		switch found, err := resume.Find(ctx, folder); {
		case err != nil && ctx.Err() == nil && !errors.Is(err, runfolder.ErrLocked):
			return "", &teach.DamagedError{Folder: folder, Err: err}
		case err != nil:
			return "", err
		case found.Done() && runfolder.HasBest(folder):
			return trainedAlone, nil // by other options too where the run is resumed: it began with this teacher
		case other:
			return newAlone, beginAlone(folder, key)
		case found.Checkpoint != "" && !found.Done():
			return begunAlone, nil
		}
		return newAlone, nil
	}
	if r.plan.Ranks == nil {
		return find()
	}
	type finding struct{ State, Error string }
	var own finding
	if r.writes() {
		state, err := find()
		if own.State = state; err != nil {
			own.Error = err.Error()
		}
	}
	all, err := collective.Gather(r.plan.Ranks, own)
	if err == nil && all[0].Error != "" {
		err = errors.New(all[0].Error)
	}
	if err != nil {
		return "", err
	}
	return all[0].State, nil
}

// beginAlone empties the folder of a teacher for a training with a key, which it has only once nothing of an earlier
// one is left: that would be taken for the new one, even where a training that fails has moved it back.
func beginAlone(folder, key string) error {
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := runfolder.WriteFile(folder+".key", nil); err != nil { // until all is removed it has no key
		return err
	}
	if err := runfolder.Abandon(folder); err != nil {
		return err
	}
	if err := runfolder.Clear(folder); err != nil {
		return err
	}
	return runfolder.WriteFile(folder+".key", []byte(key))
}

// alone returns the experiment of a task alone, by its number, with as many epochs, or updates, of its own examples as
// it has beside the others, and as large a part of them for the warmup.
func (r *Run) alone(number int) (*config.Experiment, error) {
	defaults, err := config.DefaultTraining()
	if err != nil {
		return nil, err
	}
	e := *r.experiment()
	task := e.Tasks[number]
	if same := task.Data.SameAs; same != "" {
		task.Data.SameAs = ""
	}
	e.Tasks, e.Kept, e.Warnings = []config.Task{task}, nil, nil
	e.RemoveTeachers()
	t := &e.Training
	t.OutputDir, t.TaskBests = "", false
	t.Sampling, t.Weighting = defaults.Sampling, defaults.Weighting
	own := t.Selection.Metric == report.TaskLoss(task.Name)
	for _, head := range task.Heads {
		for _, m := range r.Data.Tasks[number].Evaluate(nil, nil) {
			own = own || t.Selection.Metric == report.HeadMetric(task.Name, head.Name, m.Name)
		}
	}
	overall := slices.Contains([]string{report.Overall, "eval_loss"}, t.Selection.Metric)
	if t.Selection.Weights != nil || !own && !overall {
		t.Selection = report.Selection{Metric: report.Overall, Higher: true}
	}
	for _, steps := range t.StepCounts() { // those of all tasks
		if *steps > 0 {
			*steps = max(1, *steps*r.batchesOf(number)/max(1, r.batchesOf(-1)))
		}
	}
	return &e, nil
}

// batchesOf returns about how many batches an epoch has of the group of a task, by its number; -1: of all groups.
func (r *Run) batchesOf(number int) int {
	n := 0
	for g, group := range r.Data.Groups {
		if number < 0 || slices.Contains(group.Tasks, number) {
			n += 1 + len(r.data()[g].Lengths())/r.experiment().Training.BatchSize
		}
	}
	return n
}

// aloneOptions are those of the data of a task alone, which is divided as that of the run.
func (r *Run) aloneOptions() dataset.Options {
	return dataset.Options{Pass: r.pass, Listed: func(visit func(tasks []string, split string, at corpus.Place)) error {
		for _, group := range r.Data.Groups {
			var names []string
			for _, number := range group.Tasks {
				names = append(names, r.experiment().Tasks[number].Name)
			}
			for split, places := range group.Divided {
				for at := range places {
					visit(names, split, at)
				}
			}
		}
		return nil
	}}
}

// aloneKey returns what the training of a task alone depends on: its experiment, the weights that it begins with, and
// the run's data.
func (r *Run) aloneKey(ctx context.Context, e *config.Experiment, folder string) (string, error) {
	text, err := resume.Text(e, folder)
	if err == nil {
		err = r.sumEncoder(ctx)
	}
	if err != nil {
		return "", err
	}
	sum := crc32.New(files.CRC32C)
	sum.Write(text)
	fmt.Fprintln(sum, r.sums.CRC32C)
	if base := e.Model.BaseRun; base != nil { // whose heads it may take over
		was, err := runfolder.CRC32C(ctx, filepath.Join(base.Model, runfolder.ChecksumsFile))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, was)
	}
	for g, data := range r.data() {
		group := &r.Model.Groups[g]
		fmt.Fprintln(sum, group.Name, data.Checksum(group), group.Checksum(data.Dev))
	}
	return fmt.Sprintf("%08x\n", sum.Sum32()), nil
}
