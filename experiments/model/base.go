package model

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/multitask"
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
			mistakes.Add(task.Place, "task %q: type is %s, in the run %s it is %s; want type: %[4]s, or another name for "+
				"a new task", task.Name, task.Part.Type, b.Folder, from.Type)
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
