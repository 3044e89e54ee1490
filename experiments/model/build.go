package model

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// placed returns an error of the encoder with the place of the option that causes it: the file need not name the
// encoder.
func (b *builder) placed(err error) error {
	e := b.Data.Experiment
	var mistake *plugin.Mistake
	var tooLong *encoders.LengthError
	var option *encoders.OptionError
	switch {
	case !errors.As(err, &mistake):
		return err
	case errors.As(err, &tooLong):
		return &plugin.Mistake{Place: e.Place("tokenizer.max_length"),
			Err: fmt.Errorf("tokenizer: max_length: %w; want at most %d", mistake.Err, tooLong.Max)}
	case errors.As(err, &option):
		return &plugin.Mistake{Place: e.Place("model." + option.Key), Err: fmt.Errorf("model: %w", option)}
	case mistake.Place == (plugin.Place{}) && b.mode != inference:
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: mistake.Err}
	}
	return err
}

// checkSaves returns an error if a checkpoint can neither hold the encoder of m, which was read from path, nor refer to
// its files.
func checkSaves(m *multitask.Model, path string) error {
	_, saves := m.Encoder.(encoders.Saver)
	switch {
	case saves:
		return nil
	case path == "":
		return errors.New("is trained from scratch, but cannot be saved; want a base_model, and freeze: all")
	case !m.Frozen():
		return errors.New("is trained, but cannot be saved; want freeze: all")
	case len(m.Encoder.Describe().Files) == 0:
		return errors.New("can neither be saved nor list the files it is read from, so that a run could not check them")
	}
	return nil
}

// task builds a task of a group and its heads.
func (b *builder) task(group *dataset.Group, task config.Task, taskType tasks.Task) multitask.Task {
	m, about := b.Model, b.Model.Encoder.Describe()
	built := multitask.Task{Name: task.Name, Type: taskType}
	built.Pairs, built.Single = group.Paired()
	for _, head := range task.Heads {
		name := multitask.HeadName{Task: task.Name, Head: head.Name}
		set := b.Data.Labels[name]
		env := heads.Env{
			Task: task.Name, Name: head.Name,
			Output: taskType.Output(), Labels: set.Names(),
			Width: about.Width, Attention: heads.Attention(about.Attention),
			Dropout:  b.Data.Experiment.Model.Dropout,
			Training: b.Data.Statistics(name),
			Mask:     -1,
			Lenses:   b.lenses(group),
			Params:   multitask.HeadParams(m.Params, task.Name, head.Name),
		}
		if id, ok := b.Data.Tokenizer.Mask(); ok {
			env.Mask = id
		}
		if w := about.WordEmbeddings; w != nil && w.Shape[1] == about.Width {
			env.Words = w
		}
		h, err := head.Part.Build(env)
		if err != nil {
			b.mistakes.Append(b.described(err, task, head))
		}
		b.checkAccepted(task, head, h)
		b.warn(head.Place, h)
		built.Heads = append(built.Heads, multitask.Head{Name: head.Name, Head: h, Labels: set, Weight: head.Weight})
	}
	return built
}

// described returns an error of a head. Where the head wants other labels, the mistake may be in the data: the error
// then names the task and the file.
func (b *builder) described(err error, task config.Task, head config.Head) error {
	var labels *heads.LabelsError
	var mistake *plugin.Mistake
	if !errors.As(err, &labels) || !errors.As(err, &mistake) {
		return err
	}
	n := b.Data.Labelled(multitask.HeadName{Task: task.Name, Head: head.Name})
	return &plugin.Mistake{Place: mistake.Place, Err: fmt.Errorf("task %q: %w in %s of %s", task.Name, mistake.Err,
		plugin.Count(n, "labelled training example"), dataset.TrainingFile(task.Data).Name)}
}

// lenses returns the lenses of a group's heads.
func (b *builder) lenses(group *dataset.Group) []heads.Lenses {
	var all []heads.Lenses
	for _, of := range b.Data.Heads(group) {
		lenses := heads.TraitsOf(of.Head.Part.Options).Lenses
		if lenses.Count > 0 {
			at := multitask.HeadParams(b.Model.Params, of.Task.Name, of.Head.Name)
			all = append(all, heads.Lenses{Name: at.In(lenses.Name).Path(), Count: lenses.Count})
		}
	}
	return all
}

// checkAccepted reports targets of the training data that a head cannot learn.
func (b *builder) checkAccepted(task config.Task, head config.Head, h heads.Head) {
	accepter, ok := h.(heads.TargetChecker)
	if !ok {
		return
	}
	err := b.Data.EachTarget(multitask.HeadName{Task: task.Name, Head: head.Name},
		func(at corpus.Place, target corpus.Target) {
			if err := accepter.CheckTarget(target); err != nil {
				b.mistakes.Append(fmt.Errorf("%s: task %q: head %q: %w", at, task.Name, head.Name, err))
			}
		})
	if err != nil {
		b.mistakes.Append(err)
	}
}
