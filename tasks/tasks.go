package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Task makes examples from records and computes metrics of predictions.
type Task interface {
	// Example makes an example from a record, with a target for each head of the task's env, in order. Errors begin
	// with the record's Place.
	Example(r corpus.Record) (corpus.Example, error)
	// Evaluate compares the predictions of one head with the targets, and returns metrics, the main one first. The main
	// one is never Lower, since the highest selects the best model; eval_overall is its mean over heads. gold and
	// predicted have the same length; gold has no nil. If they are empty, all metrics are 0.
	Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric
	// Output is the kind of outputs that the task's heads have.
	Output() *outputs.Kind
}

// Metric is a figure of an evaluation. Higher is better, unless Lower is set.
type Metric struct {
	Name  string
	Value float64 // a fraction, not per cent; an error, as rmse, in the unit of the targets
	Lower bool    // lower is better
	// Undefined: the targets give the metric no meaning. Value does not count: it is null in JSON, "-" in tables, in no
	// mean, and selects no model.
	Undefined bool
	F1        bool // the head's main F1; eval_overall_f1 is its mean over all heads
	// Former is the name that the metric had before, which an experiment file may still give; "": it had the same.
	Former string
}

// FieldLister is a Task that reads targets from other fields of a record too, where it has none in that of their kind.
type FieldLister interface {
	// OtherFields lists these fields, each kind of them in the order of lookup: same hold a target in the form that
	// outputs.Kind.Data returns; different, which come after them, in another.
	OtherFields() (same, different []string)
}

// Surveyor is a Task that reads all records of a file before it makes examples of them.
type Surveyor interface {
	// Survey is called for each file, the training file first; when a trained run is opened, with one record that has
	// all labels of each head.
	Survey(records []corpus.Record)
}

// SurveySampler is a Surveyor of files that are larger than memory.
type SurveySampler interface {
	Surveyor
	// SurveySample returns the indices of a few of the records, with which alone Survey finds what it finds with all.
	SurveySample(records []corpus.Record) []int
}

// SurveyRecords calls t.Survey if t is a Surveyor.
func SurveyRecords(t Task, records []corpus.Record) {
	if s, ok := t.(Surveyor); ok {
		s.Survey(records)
	}
}

// TargetChecker is a Task that checks the targets of a split as a whole.
type TargetChecker interface {
	// CheckTargets returns warnings about the targets of one head in a split, nil where an example has none. tunes
	// reports whether heads are tuned on the split.
	CheckTargets(gold []corpus.Target, split, head string, tunes bool) []string
}

// Env is what the constructor of a task receives beside its options.
type Env struct {
	Name  string
	Heads []string
	// Split splits a raw text into words, as the tokenizer does.
	Split func(text string) []corpus.Span
}

var registry = plugin.NewRegistry[Env, Task]("task")

// Registry lists the registered tasks.
func Registry() *plugin.Registry[Env, Task] { return registry }

// Register registers a task as `type: name`. defaults are the options that a file leaves out; New makes the task.
func Register[O any](name string, defaults O, New func(O, Env) (Task, error)) {
	plugin.Register(registry, name, defaults, New)
}
