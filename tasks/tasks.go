package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Task makes examples of records and judges predictions.
type Task interface {
	// Example makes an example of a record, with a target for each head of the task's env, in order. The record knows
	// its file and line; corpus does the files.
	Example(r corpus.Record) (corpus.Example, error)
	// Judge compares the predictions of one head with the targets, examples without one left out by the caller; gold
	// and predicted are of one length. The first metric is the main one. It takes an empty list: all metrics are 0.
	Judge(gold []corpus.Target, predicted []corpus.Prediction) []Metric
	// Output is the kind of outputs that the task's heads have.
	Output() *outputs.Kind
}

// Metric is a figure that is better when it is higher, unless it says that lower is better.
type Metric struct {
	Name  string
	Value float64 // a fraction, not per cent; an error, as rmse, in the unit of what is asked for
	Lower bool    // is better
}

// Surveyor is a Task that reads all records of a file before it makes examples of them.
type Surveyor interface {
	// Survey is called for each file, that of training first; when a trained run is opened, with one record that has
	// all labels of each head.
	Survey(records []corpus.Record)
}

// Survey calls the Survey of a task that is a Surveyor.
func Survey(t Task, records []corpus.Record) {
	if s, ok := t.(Surveyor); ok {
		s.Survey(records)
	}
}

// TargetChecker is a Task that warns of what the targets of a split are together.
type TargetChecker interface {
	// CheckTargets returns warnings about the targets of one head in a split, nil where an example has none. tunes
	// tells that heads are tuned on the split.
	CheckTargets(gold []corpus.Target, split, head string, tunes bool) []string
}

// Env is what a task is told.
type Env struct {
	Name  string
	Heads []string
	// Split divides a raw text into words, as the tokenizer does.
	Split func(text string) []corpus.Span
}

var registry = plugin.NewRegistry[Env, Task]("task")

// Registry lists the registered tasks.
func Registry() *plugin.Registry[Env, Task] { return registry }

// Register makes a task known as `type: name`. defaults are its options where a file is silent; New makes it.
func Register[O any](name string, defaults O, New func(O, Env) (Task, error)) {
	plugin.Register(registry, name, defaults, New)
}
