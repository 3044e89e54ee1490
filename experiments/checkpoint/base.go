package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// BaseRun is the run that a training continues.
type BaseRun struct {
	Folder string
	Tasks  []Task

	labels  map[multitask.HeadName]*corpus.Labels
	weights string // file of all its parameters but the encoder's
}

// ReadBaseRun reads what the checkpoint of an experiment's base run has besides tensors, and checks its files and that
// the experiment can take over its tasks; nil without a base run. It checks also the run that the encoder is made of.
func ReadBaseRun(ctx context.Context, e *config.Experiment) (*BaseRun, error) {
	at := e.Model.BaseRun
	if at == nil {
		return nil, checkFrom(ctx, e)
	}
	base := &BaseRun{Folder: at.Folder, weights: filepath.Join(at.Model, runfolder.TensorsFile)}
	about, err := Read(ctx, at.Model, filepath.Dir(at.File))
	if err == nil {
		base.Tasks = about.Tasks
		base.labels, err = about.Labels()
	}
	if err != nil {
		return nil, &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: err}
	}
	return base, base.check(e)
}

// checkFrom returns an error if the checkpoint of the run that encoder.from names is damaged, or quantized.
func checkFrom(ctx context.Context, e *config.Experiment) error {
	at := e.Model.FromRun
	if at == nil {
		return nil
	}
	about, err := Read(ctx, at.Model, filepath.Dir(at.File))
	if err == nil {
		err = about.Quantized.Check(at.Folder)
	}
	if err != nil {
		err = fmt.Errorf("model: %s: %w", e.Model.BaseKey(), err)
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: err}
	}
	return nil
}

// Task returns the task of the run that a task takes over; nil if it is new.
func (b *BaseRun) Task(task config.Task) *Task {
	i := slices.IndexFunc(b.Tasks, func(t Task) bool { return task.From != "" && t.Name == task.From })
	if i < 0 {
		return nil
	}
	return &b.Tasks[i]
}

// SetAdapters gives the tasks that are kept and not trained the adapters of the run, by the name of the first task that
// reads the same texts.
func (b *BaseRun) SetAdapters(e *config.Experiment) {
	for i, task := range e.Kept {
		if from := b.Task(task); from != nil && from.Adapter != "" {
			e.Kept[i].Adapter = cmp.Or(task.Data.SameAs, task.Name)
		}
	}
}

// Head returns the head of the run that a head of a task takes over: that of its name, or if both have the name of
// their task, which has another name now, the one of that name; nil if it is new.
func (b *BaseRun) Head(task config.Task, head string) *Head {
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
func (b *BaseRun) Labels(e *config.Experiment) map[multitask.HeadName]*corpus.Labels {
	labels := map[multitask.HeadName]*corpus.Labels{}
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		for _, head := range task.Heads {
			if from := b.Head(task, head.Name); from != nil {
				own := b.labels[multitask.HeadName{Task: task.From, Head: from.Name}]
				labels[multitask.HeadName{Task: task.Name, Head: head.Name}] = own
			}
		}
	}
	return labels
}

// check returns the mistakes of tasks and heads of the experiment that are of other types than those of the run that
// they take over.
func (b *BaseRun) check(e *config.Experiment) error {
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

// TakeOver sets the parameters of a model's fusion, heads and adapters to those of the run.
func (b *BaseRun) TakeOver(a *model.Assembled) error {
	file, err := safetensors.Open(b.weights)
	if err != nil {
		return err
	}
	defer file.Close()
	e := a.Data.Experiment
	t := takeover{Assembled: a, base: b, file: file, tasks: slices.Concat(e.Tasks, e.Kept)}
	t.fusion()
	t.adapters()
	for _, task := range t.tasks {
		for _, head := range task.Heads {
			if from := b.Head(task, head.Name); from != nil {
				t.head(task, head, from)
			}
		}
	}
	return t.mistakes.Err()
}

type takeover struct {
	*model.Assembled
	base     *BaseRun
	tasks    []config.Task // that are trained, and that are kept
	file     *safetensors.File
	mistakes plugin.Mistakes
}

// head sets the parameters of a head to those of a head of the run. Along an axis that has the length of the labels,
// those of labels that the run lacks follow; they stay as they were initialised.
func (t *takeover) head(task config.Task, head config.Head, from *Head) {
	was := len(from.Labels)
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
		t.mistakes.Append(fmt.Errorf("%s: %w", t.base.weights, err))
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
	for _, task := range t.tasks {
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
	then, renamed, err := model.RenamedFusionParams(t.Data.Experiment, t.Model.Encoder, was, now)
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
				"has not; leave fusion out", name, w.Shape, t.base.weights)
			return
		}
		t.set(w, info)
	}
}

// adapters sets the adapters of groups to those of the run that they come from.
func (t *takeover) adapters() {
	was := map[string]string{} // task → the adapter that it had
	for _, task := range t.tasks {
		if from := t.base.Task(task); from != nil {
			was[task.Name] = from.Adapter
		}
	}
	for _, group := range slices.Concat(t.Model.Groups, t.Kept) {
		for _, of := range group.Tasks {
			if group.Adapter != "" && was[of.Name] != "" {
				t.mistakes.Append(readAdapter(filepath.Dir(t.base.weights), was[of.Name], t.Model, group.Adapter))
				break
			}
		}
	}
}
