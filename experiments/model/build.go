package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// placed gives an error of the encoder the place that asks for what it has not: a file need not name the encoder.
func (b *builder) placed(err error) error {
	e := b.Data.Experiment
	var mistake *plugin.Mistake
	var tooLong *encoders.LengthError
	switch {
	case !errors.As(err, &mistake):
		return err
	case errors.As(err, &tooLong):
		return &plugin.Mistake{Place: e.Place("tokenizer.max_length"),
			Err: fmt.Errorf("tokenizer: max_length: %w; want at most %d", mistake.Err, tooLong.Max)}
	case mistake.Place == (plugin.Place{}) && b.mode != inference:
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: mistake.Err}
	}
	return err
}

// checkSaves makes sure that a checkpoint can hold the encoder of m, which was read from path, or name it.
func checkSaves(m *multitask.Model, path string) error {
	_, saves := m.Encoder.(encoders.Saver)
	switch {
	case saves:
		return nil
	case path == "":
		return errors.New("starts from nothing, but cannot be saved; give it a base_model, and freeze: all")
	case !m.Frozen():
		return errors.New("learns, but cannot be saved; freeze: all leaves it as it is")
	case len(m.Encoder.Describe().Files) == 0:
		return errors.New("can neither be saved nor tell which files it is read from, so a run could not know it again")
	}
	return nil
}

func (b *builder) task(texts *dataset.Group, task config.Task, kind tasks.Task) multitask.Task {
	m, about := b.Model, b.Model.Encoder.Describe()
	train, single := texts.Examples[config.Train], func(e *corpus.Example) bool { return !e.Paired }
	built := multitask.Task{Name: task.Name, Kind: kind, Pairs: len(train) > 0 && !slices.ContainsFunc(train, single)}
	for _, head := range task.Heads {
		set := b.Data.Labels[multitask.HeadName{Task: task.Name, Head: head.Name}]
		env := heads.Env{
			Task: task.Name, Name: head.Name,
			Output: kind.Output(), Labels: set.Names(),
			Width: about.Width, Attention: heads.Attention(about.Attention),
			Dropout:  b.Data.Experiment.Model.Dropout,
			Training: b.trainingOf(task, head, kind.Output(), set),
			Mask:     -1,
			Lenses:   b.lenses(texts),
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
			b.mistakes.Append(err)
		}
		b.checkAccepted(task, head, h)
		b.warn(head.Place, h)
		built.Heads = append(built.Heads, multitask.Head{Name: head.Name, Head: h, Labels: set, Weight: head.Weight})
	}
	return built
}

// lenses lists those of a group's heads.
func (b *builder) lenses(texts *dataset.Group) []heads.Lenses {
	var all []heads.Lenses
	for _, of := range b.Data.Heads(texts) {
		lenses := heads.TraitsOf(of.Head.Part.Options).Lenses
		if lenses.Count > 0 {
			at := multitask.HeadParams(b.Model.Params, of.Task.Name, of.Head.Name)
			all = append(all, heads.Lenses{Name: at.In(lenses.Name).Path(), Count: lenses.Count})
		}
	}
	return all
}

// checkAccepted holds the gold answers that were read against what a head can learn.
func (b *builder) checkAccepted(task config.Task, head config.Head, h heads.Head) {
	accepter, ok := h.(heads.Accepter)
	if !ok {
		return
	}
	examples, number := b.Data.Targets(multitask.HeadName{Task: task.Name, Head: head.Name})
	for _, e := range examples {
		if err := accepter.Accepts(e.Targets[number]); err != nil {
			b.mistakes.Append(fmt.Errorf("%s: task %q: head %q: %w", e.Place, task.Name, head.Name, err))
		}
	}
}

// trainingOf sums up the training data of a head; there is none where the model is not trained.
func (b *builder) trainingOf(task config.Task, head config.Head, kind *outputs.Kind,
	labels *corpus.Labels) heads.Training {
	t := heads.Training{Counts: make([]int, len(labels.Names())), Deviation: 1}
	examples, h := b.Data.Targets(multitask.HeadName{Task: task.Name, Head: head.Name})

	// units, labels, and the mean of numbers
	var numbers []float64
	sum := 0.0
	for _, e := range examples {
		c := kind.Count(e.Targets[h])
		t.Units += c.Units
		for _, id := range c.Labels {
			if id >= 0 {
				t.Counts[id]++
			}
		}
		if c.Number != nil {
			numbers = append(numbers, *c.Number)
			sum += *c.Number
		}
	}
	if t.Units == 0 {
		return t
	}
	t.Mean = sum / float64(t.Units)

	// the deviation of numbers
	squares := 0.0
	for _, v := range numbers {
		squares += (v - t.Mean) * (v - t.Mean)
	}
	if len(numbers) > 0 && slices.Min(numbers) < slices.Max(numbers) { // else rounding may leave squares
		t.Deviation = math.Sqrt(squares / float64(t.Units))
	}
	return t
}
