package outputs

import (
	"fmt"
	"reflect"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Spec defines a kind of outputs: T is the type of its targets, P that of its predictions. Both are structs of
// exported fields: booleans, numbers, strings, and slices, pointers and structs of those. A nil function does nothing,
// unless documented otherwise; functions never receive a nil target.
type Spec[T, P any] struct {
	Name        string // that the kind is registered under: "tags"
	Description string // of an output in errors: "a tag for each word"
	// Field is the field of a record that holds a target; "": targets are made from the texts. It is also a key of a
	// task's data, which names the column: {grade: COLUMN}. With {grade: {HEAD: COLUMN}} a record has the target of
	// head HEAD in the field grade.HEAD, which a task of the kind reads in place of grade.
	Field string
	Traits

	// Names calls visit with each label that a target names, "" left out. visit may change it.
	Names func(t *T, visit func(name *string))
	// NamedByID reports whether a target names its labels by their numbers alone, as a list of 0 and 1 does.
	NamedByID func(t *T) bool
	// AssignIDs sets the numbers of a target's labels.
	AssignIDs func(t *T, labels *corpus.Labels)
	// Unknown lists the labels of a numbered target that do not occur in training, as often as they occur in it.
	Unknown func(t *T) []string
	// Locate finds the positions of a numbered target in the windows of its example.
	Locate func(t *T, e *corpus.Example)
	// Truncated reports whether no window of the example contains the located target.
	Truncated func(t *T) bool
	// Count returns the contribution of a numbered target to the statistics of training data; nil: one unit.
	Count func(t *T) Count
	// Unlabelled is a warning if n of all training examples have no target.
	Unlabelled func(n, all int) string

	// Right reports whether a named prediction is right; nil: predictions are not right or wrong, as numbers.
	Right func(t *T, p *P) bool
	// NamePrediction sets the names that belong to predicted numbers.
	NamePrediction func(p *P, e *corpus.Example, labels *corpus.Labels)
	// Decide changes which labels a named prediction answers; nil: its predictions are no labels with probabilities.
	Decide func(p *P, by Decision, labels *corpus.Labels)
	// JSON returns the value that `jenga predict` writes for a named prediction; nil: the prediction itself. Offsets in
	// it are those of Input.Offsets.
	JSON func(p *P, in Input) any
	// Data returns what a data file has in Field for a target like the named prediction: a value of a corpus.Record's
	// fields, or []*string with nil for what is missing; nil: predictions cannot be written as data.
	Data func(p *P, in Input) any
	// Schema is the JSON Schema of JSON.
	Schema string
	// Answers returns the answers in a prediction, with their logits: see Kind.Answers.
	Answers func(p *P, in Input, rows nn.Rows, example int, shape []int) []Answer

	// Sample makes the data that package parttest tests tasks and heads of the kind with.
	Sample SampleSpec[T, P]
}

// Register registers a kind. It panics if the name is taken.
func Register[T, P any](s Spec[T, P]) *Kind {
	switch _, taken := registry[s.Name]; {
	case s.Name == "" || s.Description == "":
		panic("outputs: a kind without a name or a description")
	case taken:
		panic(fmt.Sprintf("outputs: duplicate kind %q", s.Name))
	}
	k := &Kind{Traits: s.Traits, name: s.Name, description: s.Description, field: s.Field, schema: []byte(s.Schema)}
	s.eraseTargets(&k.erased)
	s.erasePredictions(&k.erased)
	k.sample = s.Sample.erase()
	registry[s.Name] = k
	return k
}

// eraseTargets sets the functions over targets alone.
func (s Spec[T, P]) eraseTargets(e *erased) {
	e.encodeTarget, e.unlabelled = newCodec(reflect.TypeFor[T]()), s.Unlabelled
	if s.Names != nil {
		e.names = func(t corpus.Target, visit func(name *string)) { s.Names(As[T](t), visit) }
	}
	if s.NamedByID != nil {
		e.namedByID = func(t corpus.Target) bool { return s.NamedByID(As[T](t)) }
	}
	if s.AssignIDs != nil {
		e.assignIDs = func(t corpus.Target, labels *corpus.Labels) { s.AssignIDs(As[T](t), labels) }
	}
	if s.Unknown != nil {
		e.unknown = func(t corpus.Target) []string { return s.Unknown(As[T](t)) }
	}
	if s.Locate != nil {
		e.locate = func(t corpus.Target, of *corpus.Example) { s.Locate(As[T](t), of) }
	}
	if s.Truncated != nil {
		e.truncated = func(t corpus.Target) bool { return s.Truncated(As[T](t)) }
	}
	if s.Count != nil {
		e.count = func(t corpus.Target) Count { return s.Count(As[T](t)) }
	}
}

// erasePredictions sets the functions over predictions.
func (s Spec[T, P]) erasePredictions(e *erased) {
	e.encodeOutput = newCodec(reflect.TypeFor[P]())
	e.json = func(p corpus.Prediction, _ Input) any { return p }
	if s.JSON != nil {
		e.json = func(p corpus.Prediction, in Input) any { return s.JSON(As[P](p), in) }
	}
	if s.Data != nil {
		e.data = func(p corpus.Prediction, in Input) any { return s.Data(As[P](p), in) }
	}
	if s.Right != nil {
		e.right = func(t corpus.Target, p corpus.Prediction) bool { return s.Right(As[T](t), As[P](p)) }
	}
	if s.NamePrediction != nil {
		e.namePrediction = func(p corpus.Prediction, of *corpus.Example, labels *corpus.Labels) {
			s.NamePrediction(As[P](p), of, labels)
		}
	}
	if s.Decide != nil {
		e.decide = func(p corpus.Prediction, by Decision, labels *corpus.Labels) { s.Decide(As[P](p), by, labels) }
	}
	if s.Answers != nil {
		e.answers = func(p corpus.Prediction, in Input, rows nn.Rows, example int, shape []int) []Answer {
			return s.Answers(As[P](p), in, rows, example, shape)
		}
	}
}
