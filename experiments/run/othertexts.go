package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/othertexts"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// recordOtherTexts records what heads of the best model find in dev texts of other tasks, where there are such heads
// and texts, and a warning of each that finds far more than in its own. What cannot be measured is a warning: the
// training has come to its end. So is what a signal interrupts, but where the training can be resumed for it.
func (r *Run) recordOtherTexts(ctx context.Context, c *checkpointer, record func(event train.Event) error) error {
	texts := othertexts.TextsOf(r.Data, config.Dev)
	if r.Data.Kept != nil {
		texts = append(texts, othertexts.TextsOf(r.Data.Kept, config.Dev)...)
	}
	if len(othertexts.Heads(r.Model, texts)) == 0 {
		return nil
	}
	heads, warnings, err := r.otherTexts(ctx, c.folder, texts)
	switch {
	case errors.Is(err, context.Canceled) && c.stateAt != "":
		return err
	case err != nil:
		return record(train.Warning{Text: fmt.Sprintf("what heads predict on texts of other tasks is not measured: %v",
			err)})
	}
	if err := record(events.OtherTexts{Heads: heads}); err != nil {
		return err
	}
	for _, text := range warnings {
		if err := record(train.Warning{Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// otherTexts measures the best model of the run in a folder, which it opens beside that of the training.
func (r *Run) otherTexts(ctx context.Context, folder string, texts []othertexts.Texts) (
	heads []report.HeadRates, warnings []string, err error) {
	// memory
	t := r.experiment().Training
	need := memory.Estimate{Weights: memory.Weights(r.Model)}
	if r.teachers != nil {
		need.Weights *= 2 // one of them
	}
	for _, of := range texts {
		sizes := multitask.EvaluationSizes(of.Examples, t.BatchSize, t.BatchTokens)
		_, bytes := r.Model.Largest(sizes, encoders.Workload{})
		need.Evaluation = max(need.Evaluation, need.Weights+multitask.Reserve(bytes))
	}
	if err := r.machine.Fits(need, plugin.Place{}); err != nil {
		return nil, nil, err
	}

	// the best model
	best, err := checkpoint.OpenBeside(ctx, r.Model, folder)
	if err != nil {
		return nil, nil, err
	}
	defer encoders.Close(best.Model.Encoder)

	of := othertexts.Model{Data: best.Data, Model: best.Model, Machine: r.machine}
	teachers := references{run: r, folder: folder}
	defer teachers.close()
	heads, err = othertexts.Measure(ctx, of, texts, func(task string) (*othertexts.Reference, error) {
		return teachers.of(ctx, task)
	})
	return heads, othertexts.Warnings(best.Data, config.Dev, heads), err
}

// references opens the teachers of tasks, one at a time: each may be as large as the model.
type references struct {
	run    *Run
	folder string
	name   string           // of the run that is open
	opened *model.Assembled // nil: none is
}

// of returns the teacher that a task is compared with; nil if it has none.
func (t *references) of(ctx context.Context, task string) (*othertexts.Reference, error) {
	e := t.run.experiment()
	number := slices.IndexFunc(e.Tasks, func(of config.Task) bool { return of.Name == task })
	if number < 0 { // it is kept
		return nil, nil
	}
	run, alone := e.TeacherOf(e.Tasks[number], t.folder)
	if run.Name == "" || alone && !t.run.teachers.Needs(number) {
		return nil, nil
	}
	if run.Name != t.name {
		t.close()
		opened, err := checkpoint.OpenBeside(ctx, t.run.Model, run.Name)
		if err != nil {
			return nil, err
		}
		t.name, t.opened = run.Name, opened
	}
	of := othertexts.Model{Data: t.opened.Data, Model: t.opened.Model, Machine: t.run.machine}
	return &othertexts.Reference{Task: task, Model: of}, nil
}

func (t *references) close() {
	if t.opened != nil {
		encoders.Close(t.opened.Model.Encoder)
	}
	t.name, t.opened = "", nil
}

// untaught returns a warning of the tasks whose heads may find spans or labels in texts of other tasks, about which no
// example teaches them anything, and no teacher. With adapters of their own tasks do not disturb each other.
func (r *Run) untaught() []train.Warning {
	if r.experiment().Model.LoRA.PerTask {
		return nil
	}
	texts := othertexts.TextsOf(r.Data, config.Dev)
	if len(texts) < len(r.Data.Groups) {
		texts = othertexts.TextsOf(r.Data, config.Train)
	}
	names, left := []string{}, map[string]bool{}
	for _, task := range r.experiment().Tasks {
		run, _ := r.experiment().TeacherOf(task, "")
		left[task.Name] = run.Name != ""
	}
	for _, head := range othertexts.Heads(r.Model, texts) {
		g, t, err := r.Model.Group(head.Task)
		questions := err == nil && g.Tasks[t].Type.Output().FromContext // all may have an answer, on any context
		if !questions && !left[head.Task] {
			names, left[head.Task] = append(names, head.Task), true
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []train.Warning{{Text: fmt.Sprintf("%s: no example says what their heads shall find in texts of other "+
		"tasks; jenga train measures at its end what they do. %s", othertexts.Named(names),
		othertexts.Remedy(r.experiment()))}}
}
