package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Grow builds the model that an experiment trains on from a run: data has the labels of base for the heads that are
// taken over.
func Grow(data *dataset.Dataset, base *Base) (*Assembled, error) {
	built, err := New(data)
	if err != nil {
		return nil, err
	}
	return built, built.TakeOver(base)
}

// TakeOver sets the parameters of fusion and heads to those of base.
func (a *Assembled) TakeOver(base *Base) error {
	file, err := safetensors.Open(base.Weights)
	if err != nil {
		return err
	}
	defer file.Close()
	t := takeover{Assembled: a, base: base, file: file}
	t.fusion()
	t.adapters()
	for _, task := range a.tasks() {
		for _, head := range task.Heads {
			if from := base.Head(task, head.Name); from != nil {
				t.head(task, head, from)
			}
		}
	}
	return t.mistakes.Err()
}

// tasks returns the tasks of the model: those that are trained, and those that are kept.
func (a *Assembled) tasks() []config.Task {
	return slices.Concat(a.Data.Experiment.Tasks, a.Data.Experiment.Kept)
}

// takeover sets parameters to those of a run.
type takeover struct {
	*Assembled
	base     *Base
	file     *safetensors.OpenFile
	mistakes plugin.Mistakes
}

// head sets the parameters of a head to those of a head of the run. Along an axis that has the length of the labels,
// those of labels that the run lacks follow; they stay as they were initialised.
func (t *takeover) head(task config.Task, head config.Head, from *BaseHead) {
	was := len(from.Labels.Names())
	now := was
	learns := !task.Keep || t.Data.Experiment.Training.Rehearse > 0
	if set := t.Data.Labels[multitask.HeadName{Task: task.Name, Head: head.Name}]; set != nil && learns {
		now = len(set.Names())
	}
	prefix := multitask.HeadParams(nn.NewParams(0), task.From, from.Name).Path() + "."
	known := map[string]bool{}
	wrong := func(format string, args ...any) {
		t.mistakes.Add(head.Place, "task %q: head %q: %s; want the options that the head has in the run %s, or "+
			"another name for a new head", task.Name, head.Name, fmt.Sprintf(format, args...), t.base.Folder)
	}
	at := multitask.HeadParams(t.Model.Params, task.Name, head.Name)
	for _, w := range at.All() {
		name := strings.TrimPrefix(w.Name, at.Path()+".")
		known[prefix+name] = true
		info, ok := t.file.Info(prefix + name)
		switch {
		case !ok && w.Frozen: // such as weights of labels, which follow from the options
			continue
		case !ok:
			wrong("the run's head has no parameter %q", name)
			continue
		case !grows(info.Shape, w.Shape, was, now):
			wrong("parameter %q has shape %v, in the run %v", name, w.Shape, info.Shape)
			continue
		}
		t.set(w, info)
	}
	for _, info := range t.file.Tensors() {
		if strings.HasPrefix(info.Name, prefix) && !known[info.Name] {
			wrong("the run's head has a parameter %q, which this one lacks", strings.TrimPrefix(info.Name, prefix))
		}
	}
}

// grows reports whether a shape is another one but for axes of length was, the number of labels, whose length is now.
func grows(from, to []int, was, now int) bool {
	if len(from) != len(to) {
		return false
	}
	for i := range from {
		if from[i] != to[i] && !(from[i] == was && to[i] == now) {
			return false
		}
	}
	return true
}

// set copies a tensor of the run to the first rows, columns and so on of w.
func (t *takeover) set(w *nn.Param, info safetensors.Info) {
	values, err := t.file.Floats(info.Name)
	if err == nil && floats.NotFinite(values) >= 0 {
		err = fmt.Errorf("tensor %q has a value that is not finite", info.Name)
	}
	if err != nil {
		t.mistakes.Append(fmt.Errorf("%s: %w", t.base.Weights, err))
		return
	}
	copyCorner(w.Data, w.Shape, values, info.Shape)
	w.Changed()
}

// copyCorner copies a tensor to the corner of another, with as many axes, none of them shorter.
func copyCorner(to []float32, toShape []int, from []float32, fromShape []int) {
	if len(fromShape) <= 1 {
		copy(to, from)
		return
	}
	toRow, fromRow := len(to)/toShape[0], len(from)/fromShape[0]
	for i := range fromShape[0] {
		copyCorner(to[i*toRow:(i+1)*toRow], toShape[1:], from[i*fromRow:(i+1)*fromRow], fromShape[1:])
	}
}

// fusion sets the parameters of the fusion to those of the run. A parameter of a task that has another name now is
// found by its place among those of a fusion that is built for the run's tasks by their names then and now.
func (t *takeover) fusion() {
	var was, now []string
	names := map[string]string{}
	for _, task := range t.tasks() {
		names[task.From] = task.Name
	}
	for i, task := range t.base.Tasks {
		was = append(was, task.Name)
		name, ok := names[task.Name]
		if !ok {
			name = fmt.Sprintf("\x00%d", i) // dropped: the name of no task
		}
		now = append(now, name)
	}
	then, renamed, err := RenamedFusionParams(t.Data.Experiment, t.Model.Encoder, was, now)
	if err != nil {
		t.mistakes.Append(fmt.Errorf("%s: %w", t.base.Folder, err))
		return
	}
	own := map[string]*nn.Param{}
	for _, w := range multitask.FusionParams(t.Model.Params).All() {
		own[w.Name] = w
	}
	for i, name := range renamed {
		w := own[name]
		if w == nil {
			continue // of a task that is dropped
		}
		info, ok := t.file.Info(then[i])
		if !ok || !slices.Equal(info.Shape, w.Shape) {
			t.mistakes.Add(t.Data.Experiment.Model.Fusion.Place, "model: fusion: parameter %q has shape %v, which %s "+
				"has not; leave fusion out", name, w.Shape, t.base.Weights)
			return
		}
		t.set(w, info)
	}
}

// RenamedFusionParams returns the names of the parameters of an experiment's fusion on an encoder for tasks with the
// names was, and for the same tasks with the names now, each parameter at the same place.
func RenamedFusionParams(
	e *config.Experiment, encoder encoders.Encoder, was, now []string,
) (before, after []string, err error) {
	if before, err = fusionParams(e, encoder, was); err != nil {
		return nil, nil, err
	}
	if after, err = fusionParams(e, encoder, now); err != nil {
		return nil, nil, err
	}
	if len(before) != len(after) {
		return nil, nil, errors.New("its fusion does not depend on tasks by name alone")
	}
	return before, after, nil
}

// fusionParams returns the names of the parameters of an experiment's fusion on an encoder, if it has these tasks.
func fusionParams(e *config.Experiment, encoder encoders.Encoder, tasks []string) ([]string, error) {
	about, root := encoder.Describe(), nn.NewParams(0)
	env := fusion.Env{Tasks: tasks, Width: about.Width, Layers: about.Layers, Params: multitask.FusionParams(root)}
	if _, err := e.Model.Fusion.Build(env); err != nil {
		return nil, err
	}
	var names []string
	for _, w := range root.All() {
		names = append(names, w.Name)
	}
	return names, nil
}
