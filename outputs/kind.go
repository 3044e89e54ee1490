// Package outputs holds the kinds of outputs of tasks and heads: one label, a tag for each word, a number. A kind is a
// registered value with types of its own for targets and predictions, so that another module can add one together with
// the task and the head that use it. The rest of jenga handles targets and predictions only through their Kind.
package outputs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Kind is a registered kind of outputs. Its methods take targets and predictions of the kind's own types, and panic on
// others. The target nil, that of an unlabelled example, is allowed everywhere.
type Kind struct {
	Traits
	name, description, field string
	schema                   []byte
	erased
	sample *Sample
}

// Traits are what a kind of outputs requires of texts and of their encoding.
type Traits struct {
	PerWord     bool // there is an output for each word: texts are read word by word
	Separate    bool // the texts of a pair are encoded separately
	HidesTokens bool // heads hide tokens of their input, so that no other task can use the same batch
	WholeText   bool // the target may be anywhere in a long text: by default it is split into windows, not truncated
	// texts are a question and its context; windows move over the context, and the target is a part of it
	FromContext bool
	HasLabels   bool // targets are made of labels; their set is that of the training data
}

// erased are the functions of a Spec with their types erased; nil where it has none.
type erased struct {
	names          func(t corpus.Target, visit func(name *string))
	namedByID      func(t corpus.Target) bool
	assignIDs      func(t corpus.Target, labels *corpus.Labels)
	unknown        func(t corpus.Target) []string
	locate         func(t corpus.Target, e *corpus.Example)
	truncated      func(t corpus.Target) bool
	count          func(t corpus.Target) Count
	right          func(t corpus.Target, p corpus.Prediction) bool
	namePrediction func(p corpus.Prediction, e *corpus.Example, labels *corpus.Labels)
	decide         func(p corpus.Prediction, by Decision, labels *corpus.Labels)
	json           func(p corpus.Prediction, in Input) any
	data           func(p corpus.Prediction, in Input) any
	answers        func(p corpus.Prediction, in Input, rows nn.Rows, example int, shape []int) []Answer
	unlabelled     func(n, all int) string
	encodeTarget   codec
	encodeOutput   codec
}

// Input is the input of a prediction.
type Input struct {
	Example   *corpus.Example
	Labels    *corpus.Labels    // of the head
	Tokenizer corpus.Tokenizer  // that encoded the example
	Task      any               // the task, for type assertions
	Unit      corpus.OffsetUnit // of offsets in JSON; the zero value is characters
	// Example.Words were split from its text, so that who reads the JSON does not know them
	SplitWords bool
	Top        int // how many of the likeliest labels JSON lists with their probabilities; 0: none

	// indices of both texts, made when Offsets needs them; nil outside of Kind.JSON
	offsets *[InPair + 1]*corpus.Offsets
}

// Offsets returns the offsets that JSON has for a span of bytes of one of the example's texts.
func (in Input) Offsets(of Part, span corpus.Span) corpus.Span {
	text := in.Example.Text
	if of == InPair {
		text = in.Example.Pair
	}
	if in.offsets == nil {
		return corpus.NewOffsets(text, in.Unit).Span(span)
	}
	if in.offsets[of] == nil {
		index := corpus.NewOffsets(text, in.Unit)
		in.offsets[of] = &index
	}
	return in.offsets[of].Span(span)
}

// Count is the contribution of a target to the statistics of training data.
type Count struct {
	Units  int      // labelled units: texts, or words where words have tags
	Labels []int    // numbers of its labels; those below 0 do not count
	Number *float64 // nil: none
}

// String describes an output of the kind in errors: "one label".
func (k *Kind) String() string { return k.description }

// Name is the name that the kind is registered under.
func (k *Kind) Name() string { return k.name }

// Field is the field of a record that holds a target, and the key of data that names its column; "" if targets are made
// from the texts.
func (k *Kind) Field() string { return k.field }

// HeadField is the field of a record that holds a target of one head alone.
func (k *Kind) HeadField(head string) string {
	if k.field == "labels" {
		return "label." + head
	}
	return k.field + "." + head
}

// Discrete reports whether predictions are right or wrong, unlike numbers.
func (k *Kind) Discrete() bool { return k.right != nil }

// Right reports whether a prediction is right. The kind must be Discrete and the example labelled.
func (k *Kind) Right(t corpus.Target, p corpus.Prediction) bool { return k.right(t, p) }

// Names calls visit with each label that a target names. visit may change it.
func (k *Kind) Names(t corpus.Target, visit func(name *string)) {
	if t != nil && k.names != nil {
		k.names(t, visit)
	}
}

// NamedByID reports whether a target names its labels by their numbers alone, as a list of 0 and 1 does.
func (k *Kind) NamedByID(t corpus.Target) bool {
	return t != nil && k.namedByID != nil && k.namedByID(t)
}

// AssignIDs sets the numbers of a target's labels.
func (k *Kind) AssignIDs(t corpus.Target, labels *corpus.Labels) {
	if t != nil && k.assignIDs != nil {
		k.assignIDs(t, labels)
	}
}

// Unknown lists the labels of a numbered target that do not occur in training, as often as they occur in it.
func (k *Kind) Unknown(t corpus.Target) []string {
	if t == nil || k.unknown == nil {
		return nil
	}
	return k.unknown(t)
}

// Locate finds the positions of a numbered target in the windows of its example.
func (k *Kind) Locate(t corpus.Target, e *corpus.Example) {
	if t != nil && k.locate != nil {
		k.locate(t, e)
	}
}

// Truncated reports whether no window of the example contains the located target.
func (k *Kind) Truncated(t corpus.Target) bool {
	return t != nil && k.truncated != nil && k.truncated(t)
}

// Count returns the contribution of a target to the statistics of training data; zero for nil.
func (k *Kind) Count(t corpus.Target) Count {
	switch {
	case t == nil:
		return Count{}
	case k.count == nil:
		return Count{Units: 1}
	}
	return k.count(t)
}

// Unlabelled is a warning if n of all training examples have no target; "" for none.
func (k *Kind) Unlabelled(n, all int) string {
	if k.unlabelled == nil || n == 0 {
		return ""
	}
	return k.unlabelled(n, all)
}

// NamePrediction sets the names that belong to predicted numbers: labels, or the text of a span.
func (k *Kind) NamePrediction(p corpus.Prediction, e *corpus.Example, labels *corpus.Labels) {
	if k.namePrediction != nil {
		k.namePrediction(p, e, labels)
	}
}

// JSON returns the value that `jenga predict` writes for a named prediction, an object that Schema describes.
func (k *Kind) JSON(p corpus.Prediction, in Input) any {
	in.offsets = new([InPair + 1]*corpus.Offsets)
	return k.json(p, in)
}

// Data returns what a data file has in Field for a target like the named prediction; nil if the kind has none.
func (k *Kind) Data(p corpus.Prediction, in Input) any {
	if k.data == nil {
		return nil
	}
	in.Unit = corpus.Characters // as in all data files
	return k.data(p, in)
}

// Schema returns the JSON Schema of JSON (draft 2020-12); nil if the kind has none.
func (k *Kind) Schema() []byte { return slices.Clone(k.schema) }

// MarshalTarget returns a target as bytes.
func (k *Kind) MarshalTarget(t corpus.Target) []byte { return k.encodeTarget.marshal(t) }

// UnmarshalTarget decodes the bytes of MarshalTarget.
func (k *Kind) UnmarshalTarget(b []byte) (corpus.Target, error) { return k.encodeTarget.unmarshal(b) }

// MarshalPrediction returns a prediction as bytes.
func (k *Kind) MarshalPrediction(p corpus.Prediction) []byte { return k.encodeOutput.marshal(p) }

// UnmarshalPrediction decodes the bytes of MarshalPrediction.
func (k *Kind) UnmarshalPrediction(b []byte) (corpus.Prediction, error) {
	return k.encodeOutput.unmarshal(b)
}

// Sample returns the synthetic data that parts of the kind are tested with; nil if the kind has none.
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

// As returns a target or prediction as type T, nil for nil. It panics on another type, which is a bug in a part.
func As[T any](v any) *T {
	if v == nil {
		return nil
	}
	typed, ok := v.(*T)
	if !ok {
		panic(fmt.Sprintf("outputs: unexpected %T, want %T", v, typed))
	}
	return typed
}

// Targets returns targets as type T.
func Targets[T any](targets []corpus.Target) []*T {
	typed := make([]*T, len(targets))
	for i, t := range targets {
		typed[i] = As[T](t)
	}
	return typed
}

// Predictions returns predictions as type P.
func Predictions[P any](predictions []corpus.Prediction) []*P {
	typed := make([]*P, len(predictions))
	for i, p := range predictions {
		typed[i] = As[P](p)
	}
	return typed
}

// Erase returns pointers to predictions, with their type erased.
func Erase[P any](predictions []P) []corpus.Prediction {
	erased := make([]corpus.Prediction, len(predictions))
	for i := range predictions {
		erased[i] = &predictions[i]
	}
	return erased
}
