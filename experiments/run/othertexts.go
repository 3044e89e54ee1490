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
	for _, of := range texts {
		sizes := multitask.EvaluationSizes(of.Examples, t.BatchSize, t.BatchTokens)
		_, bytes := r.Model.Largest(sizes, encoders.Workload{})
		need.Evaluation = max(need.Evaluation, need.Weights+multitask.Reserve(bytes))
	}
	if err := r.machine.Fits(need, plugin.Place{}); err != nil {
		return nil, nil, err
	}

	// the best model
	best, err := checkpoint.OpenBeside(r.Model, folder)
	if err != nil {
		return nil, nil, err
	}
	defer encoders.Close(best.Model.Encoder)

	// teachers of what is measured, which never were trained on texts of others
	opened := map[string]*model.Assembled{} // by run
	defer func() {
		for _, teacher := range opened {
			encoders.Close(teacher.Model.Encoder)
		}
	}()
	teachers := map[string]*othertexts.Reference{}
	for _, task := range r.experiment().Tasks {
		is := func(head multitask.HeadName) bool { return head.Task == task.Name }
		run, _ := r.experiment().TeacherOf(task, folder)
		if run.Name != "" && slices.ContainsFunc(othertexts.Heads(r.Model, texts), is) {
			teacher := opened[run.Name]
			if teacher == nil {
				if teacher, err = checkpoint.OpenBeside(r.Model, run.Name); err != nil {
					return nil, nil, err
				}
				opened[run.Name] = teacher
			}
			teachers[task.Name] = &othertexts.Reference{Task: task.Name,
				Model: othertexts.Model{Data: teacher.Data, Model: teacher.Model, Machine: r.machine}}
		}
	}

	of := othertexts.Model{Data: best.Data, Model: best.Model, Machine: r.machine}
	reference := func(task string) *othertexts.Reference { return teachers[task] }
	heads, err = othertexts.Measure(ctx, of, texts, reference)
	return heads, othertexts.Warnings(best.Data, config.Dev, heads), err
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
