// Package outputs holds the kinds of outputs that tasks ask of their heads: one label, a tag for each word, a number. A
// kind is a value that is registered, with types of its own for targets and predictions, so that a module elsewhere can
// add one together with the task and the head that use it. All that the rest of jenga does with targets and
// predictions, it does through their Kind.
package outputs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Kind is a registered kind of outputs. Its methods take targets and predictions of the kind's own types, and panic on
// those of another kind's. A target of nil, which an example has that is not labelled, is allowed everywhere.
type Kind struct {
	Traits
	name, description, field string
	schema                   []byte
	erased
	sample *Sample
}

// Traits are what a kind of outputs asks of texts and of how they are encoded.
type Traits struct {
	PerWord     bool // there is an output for each word: texts are read word by word
	Separate    bool // the texts of a pair are encoded separately
	HidesTokens bool // heads hide tokens of what they read, so that no other task can read the same texts
	WholeText   bool // the target may stand anywhere in a long text: by default it is read in windows, not truncated
	FromContext bool // texts are a question and its context, which windows move over and the target is a part of
	HasLabels   bool // targets are made of labels, whose set training settles
}

// erased are the functions of a Spec over any types; nil where it has none.
type erased struct {
	names        func(t corpus.Target, see func(name *string))
	byNumber     func(t corpus.Target) bool
	number       func(t corpus.Target, labels *corpus.Labels)
	unknown      func(t corpus.Target) []string
	locate       func(t corpus.Target, e *corpus.Example)
	truncated    func(t corpus.Target) bool
	count        func(t corpus.Target) Count
	right        func(t corpus.Target, p corpus.Prediction) bool
	nameIt       func(p corpus.Prediction, e *corpus.Example, labels *corpus.Labels)
	json         func(p corpus.Prediction, in Input) any
	marks        func(p corpus.Prediction, in Input) []Mark
	logits       func(p corpus.Prediction, rows nn.Rows, example int, shape []int) []int
	unlabelled   func(n, all int) string
	encodeTarget codec
	encodeOutput codec
}

// Input is what a prediction is about.
type Input struct {
	Example   *corpus.Example
	Labels    *corpus.Labels   // of the head
	Tokenizer corpus.Tokenizer // that encoded the example
	Task      any              // the task's value, whose methods a kind may look for
}

// Count is what the statistics of training data count of a target.
type Count struct {
	Units  int      // labelled: texts, or words where words have tags
	Labels []int    // their numbers; those below 0 do not count
	Number *float64 // nil: none
}

// String is what errors call an output of the kind: "one label".
func (k *Kind) String() string { return k.description }

// Name is what the kind is registered as.
func (k *Kind) Name() string { return k.name }

// Field names the field of a record that holds a target; "" where the texts hold it themselves.
func (k *Kind) Field() string { return k.field }

// Exact tells whether a prediction is right or wrong, unlike a number, which is near or far.
func (k *Kind) Exact() bool { return k.right != nil }

// Right tells whether a prediction is right. The kind is Exact, the example labelled.
func (k *Kind) Right(t corpus.Target, p corpus.Prediction) bool { return k.right(t, p) }

// Names calls see with each label that a target names. see may change it.
func (k *Kind) Names(t corpus.Target, see func(name *string)) {
	if t != nil && k.names != nil {
		k.names(t, see)
	}
}

// ByNumber tells whether a target names its labels by their numbers alone, as a list of 0 and 1 does.
func (k *Kind) ByNumber(t corpus.Target) bool { return t != nil && k.byNumber != nil && k.byNumber(t) }

// Number sets the numbers of a target's labels.
func (k *Kind) Number(t corpus.Target, labels *corpus.Labels) {
	if t != nil && k.number != nil {
		k.number(t, labels)
	}
}

// Unknown lists the labels of a numbered target that training does not have, as often as they occur.
func (k *Kind) Unknown(t corpus.Target) []string {
	if t == nil || k.unknown == nil {
		return nil
	}
	return k.unknown(t)
}

// Locate finds where a target, whose labels are numbered, lies in the windows of its example.
func (k *Kind) Locate(t corpus.Target, e *corpus.Example) {
	if t != nil && k.locate != nil {
		k.locate(t, e)
	}
}

// Lost tells whether no window of the example has what a located target is about.
func (k *Kind) Truncated(t corpus.Target) bool {
	return t != nil && k.truncated != nil && k.truncated(t)
}

// Count returns what the statistics of training data count of a target; nothing of nil.
func (k *Kind) Count(t corpus.Target) Count {
	switch {
	case t == nil:
		return Count{}
	case k.count == nil:
		return Count{Units: 1}
	}
	return k.count(t)
}

// Unlabelled is a warning where n of all training examples have no target; "" where that is as it should be.
func (k *Kind) Unlabelled(n, all int) string {
	if k.unlabelled == nil || n == 0 {
		return ""
	}
	return k.unlabelled(n, all)
}

// NamePrediction sets the names of what heads predict as numbers: labels, or the text of a span.
func (k *Kind) NamePrediction(p corpus.Prediction, e *corpus.Example, labels *corpus.Labels) {
	if k.nameIt != nil {
		k.nameIt(p, e, labels)
	}
}

// JSON returns what `jenga predict` writes of a named prediction, an object that Schema describes.
func (k *Kind) JSON(p corpus.Prediction, in Input) any { return k.json(p, in) }

// Schema returns the JSON Schema of JSON (draft 2020-12); nil where the kind has none.
func (k *Kind) Schema() []byte { return slices.Clone(k.schema) }

// Marks returns how a named prediction is drawn beside its text; nil where the kind does not say.
func (k *Kind) Marks(p corpus.Prediction, in Input) []Mark {
	if k.marks == nil {
		return nil
	}
	return k.marks(p, in)
}

// Logits returns the indices of the logits behind a prediction about an example of rows, in the head's first node of
// logits, which has shape [rows columns]; nil where the kind does not say, or the node has none.
func (k *Kind) Logits(p corpus.Prediction, rows nn.Rows, example int, shape []int) []int {
	if k.logits == nil || len(shape) != 2 {
		return nil
	}
	return k.logits(p, rows, example, shape)
}

// MarshalTarget returns a target as bytes.
func (k *Kind) MarshalTarget(t corpus.Target) []byte { return k.encodeTarget.marshal(t) }

// UnmarshalTarget reads what MarshalTarget wrote.
func (k *Kind) UnmarshalTarget(b []byte) (corpus.Target, error) { return k.encodeTarget.unmarshal(b) }

// MarshalPrediction returns a prediction as bytes.
func (k *Kind) MarshalPrediction(p corpus.Prediction) []byte { return k.encodeOutput.marshal(p) }

// UnmarshalPrediction reads what MarshalPrediction wrote.
func (k *Kind) UnmarshalPrediction(b []byte) (corpus.Prediction, error) {
	return k.encodeOutput.unmarshal(b)
}

// Sample returns the made-up data that parts of the kind are tested with; nil where the kind has none.
func (k *Kind) Sample() *Sample { return k.sample }

var registry = map[string]*Kind{}

// Kinds lists the registered kinds, ordered by name.
func Kinds() []*Kind {
	all := make([]*Kind, 0, len(registry))
	for _, k := range registry {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *Kind) int { return cmp.Compare(a.name, b.name) })
	return all
}

// As returns a target or prediction as one of type T, nil for nil. One of another type is a mistake in a part.
func As[T any](v any) *T {
	if v == nil {
		return nil
	}
	typed, ok := v.(*T)
	if !ok {
		panic(fmt.Sprintf("outputs: %T where %T belongs", v, typed))
	}
	return typed
}

// Targets returns targets as ones of type T.
func Targets[T any](targets []corpus.Target) []*T {
	typed := make([]*T, len(targets))
	for i, t := range targets {
		typed[i] = As[T](t)
	}
	return typed
}

// Predictions returns predictions as ones of type P.
func Predictions[P any](predictions []corpus.Prediction) []*P {
	typed := make([]*P, len(predictions))
	for i, p := range predictions {
		typed[i] = As[P](p)
	}
	return typed
}

// Erase returns pointers to predictions, as a head returns them.
func Erase[P any](predictions []P) []corpus.Prediction {
	erased := make([]corpus.Prediction, len(predictions))
	for i := range predictions {
		erased[i] = &predictions[i]
	}
	return erased
}
