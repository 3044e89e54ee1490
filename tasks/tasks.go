// Package tasks knows how examples of a kind are written and judged.
package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// Task makes examples of records and judges answers.
type Task interface {
	// Example makes an example of a record, with a target for each head of the task's site, in order. The record knows
	// its file and line; corpus does the files.
	Example(r corpus.Record) (corpus.Example, error)
	// Judge compares the answers of one head, examples without a gold answer left out by the caller; gold and
	// predicted are of one length. The first metric is the main one. It takes an empty list: all metrics are 0.
	Judge(gold []corpus.Target, predicted []corpus.Prediction) []Metric
	// Answer is what the task asks of its heads.
	Answer() corpus.Answer
}

// Metric is a figure that is better when it is higher, unless it says that lower is better.
type Metric struct {
	Name  string
	Value float64 // a fraction, not per cent; an error, as rmse, in the unit of what is asked for
	Lower bool    // is better
}

// Surveyor is a Task that looks at all records of a file before it makes examples of them: those of training first, or, of
// a trained run, one with all labels of each head.
type Surveyor interface {
	Survey(records []corpus.Record)
}

// SpanFinder is a Task whose tags mark spans of words.
type SpanFinder interface {
	// Spans lists the spans that tags mark, first to last.
	Spans(tags []string) []TagSpan
}

// Righter is a Task whose answers may be right without being the gold ones to the letter.
type Righter interface {
	// Right tells whether an answer is right.
	Right(gold corpus.Target, predicted corpus.Prediction) bool
}

// TagSpan is a span of words with a label: words Start to End, End exclusive.
type TagSpan struct {
	Label      string
	Start, End int
}

// Site is what a task is told.
type Site struct {
	Name  string
	Heads []string
	// Split divides a raw text into words, as the tokenizer does.
	Split func(text string) []corpus.Span
}

var registry = plugin.NewRegistry[Site, Task]("task")

// Registry lists the registered tasks.
func Registry() *plugin.Registry[Site, Task] { return registry }

// Register makes a task known as `type: name`. defaults are its options where a file is silent; New makes it.
func Register[O any](name string, defaults O, New func(O, Site) (Task, error)) {
	plugin.Register(registry, name, defaults, New)
}
