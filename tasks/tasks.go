package tasks

import (
	"slices"

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
}

// Describer is a Task with a Description that is not the zero value.
type Describer interface {
	// Describe returns the task's description, the same at each call.
	Describe() Description
}

// Description is what a task can do beyond the methods of Task. For the simplest task it is the zero value: what is
// nil, the task cannot do or does not need.
type Description struct {
	// SameFields and then DifferentFields are fields of a record that have the targets where it has none in the field
	// of their kind, each in the order of lookup. SameFields have them in the form that outputs.Kind.Data returns.
	SameFields, DifferentFields []string
	// Survey receives all records of each file before examples are made of them, the training file first; when a
	// trained run is opened, one record that has all labels of each head.
	Survey func(records []corpus.Record)
	// SurveySample returns the indices of a few of the records, with which alone Survey finds what it finds with all,
	// for files that are larger than memory.
	SurveySample func(records []corpus.Record) []int
	// Warnings returns warnings about the records that examples were made of.
	Warnings func() []string
	// CheckTargets returns warnings about the targets of one head in a split as a whole, nil where an example has none.
	// tunes reports whether heads are tuned on the split.
	CheckTargets func(gold []corpus.Target, split, head string, tunes bool) []string
	// Undefined reports whether a metric of this name has no meaning for gold, whatever is predicted, such as a
	// correlation with equal numbers; gold has no nil.
	Undefined func(gold []corpus.Target, metric string) bool
	// Tables returns metrics for each label. It compares the predictions of one head, as Evaluate does.
	Tables func(gold []corpus.Target, predicted []corpus.Prediction) Tables
	// Spans lists the spans of words that tags mark, first to last.
	Spans func(tags []string) []outputs.TagSpan
}

// DescriptionOf returns the description of t, the zero value if t is not a Describer.
func DescriptionOf(t Task) Description {
	if d, ok := t.(Describer); ok {
		return d.Describe()
	}
	return Description{}
}

// SurveyRecords calls the Survey of t, if it has one.
func SurveyRecords(t Task, records []corpus.Record) {
	if survey := DescriptionOf(t).Survey; survey != nil {
		survey(records)
	}
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

// exampleOf makes an example of a record, with the target of each head, nil where the record has none. With split, the
// example has words.
func exampleOf(r corpus.Record, heads []string, split func(text string) []corpus.Span,
	target func(e corpus.Example, head string) (corpus.Target, error)) (corpus.Example, error) {
	e, err := r.Example()
	if err != nil {
		return corpus.Example{}, err
	}
	if split != nil && e.Words == nil {
		e.Words = split(e.Text)
	}
	for _, head := range heads {
		t, err := target(e, head)
		if err != nil {
			return corpus.Example{}, err
		}
		e.Targets = append(e.Targets, t)
	}
	return e, nil
}

// fieldOf returns the first field with a target that r has: the head's own, then that of the kind of outputs, then the
// others; that of the kind if it has none.
func fieldOf(r corpus.Record, head string, kind *outputs.Kind, others []string) string {
	for _, name := range slices.Concat([]string{kind.HeadField(head), kind.Field}, others) {
		if has(r, name) {
			return name
		}
	}
	return kind.Field
}

// has reports whether r has a field, even if null: a head whose own field is null is not labelled by the common one.
func has(r corpus.Record, field string) bool {
	_, ok := r.Fields[field]
	return ok
}
