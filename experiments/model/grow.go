package model

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
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

// Base is the run that a training continues.
type Base struct {
	Folder  string // of the run
	Weights string // file of all its parameters but the encoder's
	Tasks   []BaseTask
}

// BaseTask is a task of the run.
type BaseTask struct {
	Name, Type     string
	Pairs, Single  bool
	SplitAgreement *float64
	Adapter        string // of the encoder; "": none
	Heads          []BaseHead
}

// BaseHead is a head of a task of the run.
type BaseHead struct {
	Name, Type string
	Labels     *corpus.Labels
}

// Task returns the task of the run that a task takes over; nil if it is new.
func (b *Base) Task(task config.Task) *BaseTask {
	for i := range b.Tasks {
		if task.From != "" && b.Tasks[i].Name == task.From {
			return &b.Tasks[i]
		}
	}
	return nil
}

// taskNamed returns the task of the run that the one of tasks with a name takes over; nil if it is new.
func (b *Base) taskNamed(name string, tasks []config.Task) *BaseTask {
	i := slices.IndexFunc(tasks, func(t config.Task) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return b.Task(tasks[i])
}

// SetAdapters gives the tasks that are kept and not trained the adapters of the run, by the name of the first task that
// reads the same texts.
func (b *Base) SetAdapters(e *config.Experiment) {
	for i, task := range e.Kept {
		if from := b.Task(task); from != nil && from.Adapter != "" {
			e.Kept[i].Adapter = cmp.Or(task.Data.SameAs, task.Name)
		}
	}
}

// Head returns the head of the run that a head of a task takes over: that of its name, or if both have the name of
// their task, which has another name now, the one of that name; nil if it is new.
func (b *Base) Head(task config.Task, head string) *BaseHead {
	from := b.Task(task)
	if from == nil {
		return nil
	}
	names := []string{head}
	if head == task.Name {
		names = append(names, from.Name)
	}
	for _, name := range names {
		for i := range from.Heads {
			if from.Heads[i].Name == name {
				return &from.Heads[i]
			}
		}
	}
	return nil
}

// Labels returns the labels of heads that the experiment takes over, by their names in the experiment.
func (b *Base) Labels(e *config.Experiment) map[multitask.HeadName]*corpus.Labels {
	labels := map[multitask.HeadName]*corpus.Labels{}
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		for _, head := range task.Heads {
			if from := b.Head(task, head.Name); from != nil {
				labels[multitask.HeadName{Task: task.Name, Head: head.Name}] = from.Labels
			}
		}
	}
	return labels
}

// Check returns the mistakes of tasks and heads of the experiment that are of other types than those of the run that
// they take over.
func (b *Base) Check(e *config.Experiment) error {
	var mistakes plugin.Mistakes
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		from := b.Task(task)
		if from == nil {
			continue
		}
		if from.Type != task.Part.Type {
			mistakes.Add(task.Place, "task %q: type is %s, in the run %s it is %s; want type: %[4]s, or another name "+
				"for a new task", task.Name, task.Part.Type, b.Folder, from.Type)
			continue
		}
		for _, head := range task.Heads {
			if was := b.Head(task, head.Name); was != nil && was.Type != head.Part.Type {
				mistakes.Add(head.Place, "task %q: head %q: type is %s, in the run %s it is %s; want type: %[5]s, or "+
					"another name for a new head", task.Name, head.Name, head.Part.Type, b.Folder, was.Type)
			} else if was == nil && task.Keep {
				mistakes.Add(head.Place, "task %q is kept, but the run %s has no head %q; leave it out, or train the "+
					"task", task.Name, b.Folder, head.Name)
			}
		}
	}
	return mistakes.Err()
}

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

// keep builds the heads of the tasks that are kept and not trained, and freezes them and what the fusion has for them.
// Where the encoder is fixed it freezes what they share with others too.
func (b *builder) keep() error {
	data := b.Data.Kept
	if data == nil {
		return nil
	}
	kept := &builder{mode: inference, Assembled: &Assembled{Data: data, Model: b.Model}}
	var names []string
	for g := range data.Groups {
		of := &data.Groups[g]
		group := multitask.Group{Name: data.Experiment.Tasks[of.Tasks[0]].Name, Adapter: kept.adapter(of)}
		for _, number := range of.Tasks {
			task := data.Experiment.Tasks[number]
			names = append(names, task.Name)
			group.Tasks = append(group.Tasks, kept.task(of, task, data.Tasks[number]))
			for _, w := range b.Model.Params.In("heads").In(task.Name).All() {
				w.Frozen = true
			}
		}
		b.Kept = append(b.Kept, group)
	}
	if err := kept.mistakes.Err(); err != nil {
		return err
	}

	// fusion
	frozen, err := fusionParams(b.Data.Experiment, b.Model.Encoder, names)
	if err != nil {
		return err
	}
	if !b.Data.Experiment.Model.Fixed() {
		shared, err := fusionParams(b.Data.Experiment, b.Model.Encoder, nil)
		if err != nil {
			return err
		}
		frozen = slices.DeleteFunc(frozen, func(name string) bool { return slices.Contains(shared, name) })
	}
	for _, w := range multitask.FusionParams(b.Model.Params).All() {
		w.Frozen = w.Frozen || slices.Contains(frozen, w.Name)
	}
	return nil
}

// With LoRA.PerTask each group of tasks that is trained has an adapter of the encoder, of the name of its first task. A
// group that is kept has that of the run it comes from, or none.

// adapter returns the name of a group's adapter, "" for none.
func (b *builder) adapter(group *dataset.Group) string {
	first := b.Data.Experiment.Tasks[group.Tasks[0]]
	switch {
	case !b.Data.Experiment.Model.LoRA.PerTask:
		return ""
	case b.mode == inference: // of a checkpoint
		return first.Adapter
	}
	return first.Name
}

// adapters returns the names of all adapters.
func (b *builder) adapters() []string {
	var all []string
	add := func(of *builder) {
		for g := range of.Data.Groups {
			if name := of.adapter(&of.Data.Groups[g]); name != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	add(b)
	if b.Data.Kept != nil {
		add(&builder{mode: inference, Assembled: &Assembled{Data: b.Data.Kept}})
	}
	return all
}

// freezeAdapters freezes the adapters of groups that are not trained; for predictions the whole encoder.
func (b *builder) freezeAdapters() {
	if b.mode == inference {
		for _, w := range multitask.EncoderParams(b.Model.Params).All() {
			w.Frozen = true
		}
		return
	}
	if b.Data.Kept != nil {
		for _, task := range b.Data.Kept.Experiment.Tasks {
			if task.Adapter != "" {
				for _, w := range multitask.AdapterParams(b.Model.Params, task.Adapter).All() {
					w.Frozen = true
				}
			}
		}
	}
}

// PassesWarnings returns a warning if a text takes several passes of the encoder, where groups have adapters. names are
// the tasks that are predicted, none for all.
func PassesWarnings(at plugin.Place, groups []multitask.Group, names ...string) []plugin.Warning {
	different := map[string]bool{}
	for _, g := range groups {
		different[g.Adapter] = true
	}
	if len(different) < 2 {
		return nil
	}
	of := "all tasks"
	if len(names) > 0 {
		of = "tasks " + strings.Join(names, ", ")
	}
	return []plugin.Warning{plugin.Warn(at, "lora: per_task: predictions of %s take %d passes of the encoder for a "+
		"text, one with each adapter, and one without where tasks have none", of, len(different))}
}

// AdapterFile returns the path of an adapter's parameters in the folder of a checkpoint.
func AdapterFile(folder, adapter string) string {
	return filepath.Join(folder, "adapters", adapter+".safetensors")
}

// ReadAdapter sets the parameters of an adapter to those of a file.
func ReadAdapter(path string, m *multitask.Model, adapter string) error {
	at := multitask.AdapterParams(m.Params, adapter)
	return safetensors.ReadParams(path, fmt.Sprintf("adapter %q", adapter), at.All(), at)
}

// adapters sets the adapters of groups to those of the run that they come from.
func (t *takeover) adapters() {
	read := map[string]bool{}
	for _, groups := range [][]multitask.Group{t.Model.Groups, t.Kept} {
		for _, group := range groups {
			for _, of := range group.Tasks {
				from := t.base.taskNamed(of.Name, t.tasks())
				if group.Adapter == "" || from == nil || from.Adapter == "" || read[group.Adapter] {
					continue
				}
				read[group.Adapter] = true
				path := AdapterFile(filepath.Dir(t.base.Weights), from.Adapter)
				t.mistakes.Append(ReadAdapter(path, t.Model, group.Adapter))
			}
		}
	}
}
