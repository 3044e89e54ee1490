// Package outputs holds the kinds of outputs of tasks and heads: one label, a tag for each word, a number. A kind is a
// registered value with types of its own for targets and predictions, so that another module can add one together with
// the task and the head that use it. The rest of jenga handles targets and predictions only through their Kind.
package outputs

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Kind is a registered kind of outputs. The functions of its Spec take targets and predictions of the kind's own types,
// and panic on others. Right, Number, Decide, Finds and Rate may be nil; any other that the kind does not have does
// nothing. All but Right take the target nil too, that of an unlabelled example.
type Kind struct {
	Spec[corpus.Target, corpus.Prediction]
	targets, predictions codec
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
	// a prediction is one of the labels, or none if its probability is too low: one threshold is for all labels
	OneLabel bool
}

// Input is the input of a prediction.
type Input struct {
	Example   *corpus.Example
	Labels    *corpus.Labels    // of the head
	Tokenizer corpus.Tokenizer  // that encoded the example
	Unit      corpus.OffsetUnit // of offsets in JSON; the zero value is characters
	// Spans lists the spans that tags mark, if the task's tags do.
	Spans func(tags []string) []TagSpan
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
	Labels []int    // numbers of its labels, of a kind with PerWord one for each word; those below 0 do not count
	Number *float64 // its number, if it is one
}

// String describes an output of the kind in errors: "one label".
func (k *Kind) String() string { return k.Description }

// HeadField is the field of a record that holds a target of one head alone.
func (k *Kind) HeadField(head string) string { return cmp.Or(k.PerHead, k.Field) + "." + head }

// Discrete reports whether predictions are right or wrong, unlike numbers.
func (k *Kind) Discrete() bool { return k.Right != nil }

// Decides reports whether predictions are decided by the probabilities of labels.
func (k *Kind) Decides() bool { return k.Decide != nil }

// MarshalTarget returns a target as bytes, which UnmarshalTarget decodes.
func (k *Kind) MarshalTarget(t corpus.Target) []byte { return k.targets.marshal(t) }

// UnmarshalTarget decodes what MarshalTarget has encoded.
func (k *Kind) UnmarshalTarget(b []byte) (corpus.Target, error) { return k.targets.unmarshal(b) }

// MarshalPrediction returns a prediction as bytes, which UnmarshalPrediction decodes.
func (k *Kind) MarshalPrediction(p corpus.Prediction) []byte { return k.predictions.marshal(p) }

// UnmarshalPrediction decodes what MarshalPrediction has encoded.
func (k *Kind) UnmarshalPrediction(b []byte) (corpus.Prediction, error) {
	return k.predictions.unmarshal(b)
}

var registry = map[string]*Kind{}

// Kinds lists the registered kinds, ordered by name.
func Kinds() []*Kind {
	all := make([]*Kind, 0, len(registry))
	for _, k := range registry {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *Kind) int { return cmp.Compare(a.Name, b.Name) })
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

// AllAs returns targets or predictions as type T.
func AllAs[T, V any](all []V) []*T {
	typed := make([]*T, len(all))
	for i, v := range all {
		typed[i] = As[T](v)
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

// Spec defines a kind of outputs: T is the type of its targets, P that of its predictions, both pointers to structs of
// exported fields: booleans, numbers, strings, and slices, pointers and structs of those. A nil function does nothing,
// unless documented otherwise; functions given here never receive a nil target.
// parttest.AddSample adds the data that tasks and heads of the kind are tested with.
type Spec[T, P any] struct {
	Name        string // that the kind is registered under: "tags"
	Description string // of an output in errors: "a tag for each word"
	// Field is the field of a record that holds a target; "": targets are made from the texts. It is also a key of a
	// task's data, which names the column: {grade: COLUMN}. With {grade: {HEAD: COLUMN}} a record has the target of
	// head HEAD in the field grade.HEAD, which a task of the kind reads in place of grade.
	Field   string
	PerHead string // in place of Field in the field of one head; "": Field
	Traits

	// Names calls visit with each label that a target names, "" left out. visit may change it, "" for none.
	Names func(t T, visit func(name *string))
	// NamedByID reports whether a target names its labels by their numbers alone, as a list of 0 and 1 does.
	NamedByID func(t T) bool
	// AssignIDs sets the numbers of a target's labels.
	AssignIDs func(t T, labels *corpus.Labels)
	// Unknown lists the labels of a numbered target that do not occur in training, as often as they occur in it.
	Unknown func(t T) []string
	// Locate finds the positions of a numbered target in the windows of its example.
	Locate func(t T, e *corpus.Example)
	// Truncated reports whether no window of the example contains the located target.
	Truncated func(t T) bool
	// Count returns the contribution of a numbered target to the statistics of training data, by default one unit; a
	// kind with labels for each word has no default.
	Count func(t T) Count
	// Unlabelled is a warning if n of all training examples have no target.
	Unlabelled func(n, all int) string

	// Right reports whether a named prediction is right. Kinds of numbers have no Right.
	Right func(t T, p P) bool
	// Number returns a predicted number, whose error is its difference from Count.Number of the target. Only kinds of
	// numbers have it.
	Number func(p P) float64
	// NamePrediction sets the names that belong to predicted numbers.
	NamePrediction func(p P, e *corpus.Example, labels *corpus.Labels)
	// Decide changes which labels a named prediction answers. Only kinds of labels with probabilities have it.
	Decide func(p P, by Decision, labels *corpus.Labels)
	// JSON returns the value that `jenga predict` writes for a named prediction, by default the prediction itself.
	// Offsets in it are those of Input.Offsets.
	JSON func(p P, in Input) any
	// Data returns what a data file has in Field for a target like the named prediction: a value of a corpus.Record's
	// fields, or []*string with nil for what is missing. Without Data predictions cannot be written as data.
	Data func(p P, in Input) any
	// Gold returns a target as Data returns the prediction that is right. A kind with Data has it.
	Gold func(t T, in Input) any
	// Finds counts what a named prediction finds in a text, and in how many units it may find something: the words of
	// spans, of those that are read. Without Finds a prediction always says something, as one of several labels does.
	Finds func(p P) (found, units int)
	// Rate describes found by units, of many predictions, in messages: "12.5 % of words in spans".
	Rate func(rate float64) string
	// Schema is the JSON Schema of JSON.
	Schema string
	// Answers returns the answers in a prediction about an example of rows, given the shape of the head's first node
	// of logits, [rows columns]. An answer that is computed in each window of a text is there once for each.
	Answers func(p P, in Input, rows nn.Rows, example int, shape []int) []Answer
}

// Register registers a kind. It panics if the name is taken.
func Register[T, P any](s Spec[*T, *P]) *Kind {
	switch _, taken := registry[s.Name]; {
	case s.Name == "" || s.Description == "":
		panic("outputs: a kind without a name or a description")
	case taken:
		panic(fmt.Sprintf("outputs: duplicate kind %q", s.Name))
	case (s.Finds == nil) != (s.Rate == nil):
		panic(fmt.Sprintf("outputs: kind %q has Finds or Rate, want both or neither", s.Name))
	case s.PerWord && s.HasLabels && s.Count == nil:
		panic(fmt.Sprintf("outputs: kind %q has a label for each word, want Count", s.Name))
	}
	k := &Kind{erased(s), newCodec(reflect.TypeFor[T]()), newCodec(reflect.TypeFor[P]())}
	registry[s.Name] = k
	return k
}

// erased returns a spec for targets and predictions of any type, which allows the nil target and has all functions but
// Right, Number, Decide, Finds and Rate.
func erased[T, P any](s Spec[*T, *P]) Spec[corpus.Target, corpus.Prediction] {
	k := Spec[corpus.Target, corpus.Prediction]{Name: s.Name, Description: s.Description, Field: s.Field,
		PerHead: s.PerHead, Traits: s.Traits, Rate: s.Rate, Schema: s.Schema}
	k.Names = func(t corpus.Target, visit func(name *string)) {
		if t != nil && s.Names != nil {
			s.Names(As[T](t), visit)
		}
	}
	k.NamedByID = func(t corpus.Target) bool { return t != nil && s.NamedByID != nil && s.NamedByID(As[T](t)) }
	k.AssignIDs = func(t corpus.Target, labels *corpus.Labels) {
		if t != nil && s.AssignIDs != nil {
			s.AssignIDs(As[T](t), labels)
		}
	}
	k.Unknown = func(t corpus.Target) []string {
		if t == nil || s.Unknown == nil {
			return nil
		}
		return s.Unknown(As[T](t))
	}
	k.Locate = func(t corpus.Target, e *corpus.Example) {
		if t != nil && s.Locate != nil {
			s.Locate(As[T](t), e)
		}
	}
	k.Truncated = func(t corpus.Target) bool { return t != nil && s.Truncated != nil && s.Truncated(As[T](t)) }
	k.Count = func(t corpus.Target) Count {
		switch {
		case t == nil:
			return Count{}
		case s.Count == nil:
			return Count{Units: 1}
		}
		return s.Count(As[T](t))
	}
	k.Unlabelled = func(n, all int) string {
		if s.Unlabelled == nil || n == 0 {
			return ""
		}
		return s.Unlabelled(n, all)
	}
	k.Gold = func(t corpus.Target, in Input) any {
		if t == nil || s.Gold == nil {
			return t
		}
		in.Unit = corpus.Characters // as in all data files
		return s.Gold(As[T](t), in)
	}
	erasePredicted(&k, s)
	return k
}

func erasePredicted[T, P any](k *Spec[corpus.Target, corpus.Prediction], s Spec[*T, *P]) {
	if s.Right != nil {
		k.Right = func(t corpus.Target, p corpus.Prediction) bool { return s.Right(As[T](t), As[P](p)) }
	}
	if s.Number != nil {
		k.Number = func(p corpus.Prediction) float64 { return s.Number(As[P](p)) }
	}
	if s.Finds != nil {
		k.Finds = func(p corpus.Prediction) (found, units int) { return s.Finds(As[P](p)) }
	}
	if s.Decide != nil {
		k.Decide = func(p corpus.Prediction, by Decision, labels *corpus.Labels) { s.Decide(As[P](p), by, labels) }
	}
	k.NamePrediction = func(p corpus.Prediction, e *corpus.Example, labels *corpus.Labels) {
		if s.NamePrediction != nil {
			s.NamePrediction(As[P](p), e, labels)
		}
	}
	k.JSON = func(p corpus.Prediction, in Input) any {
		if s.JSON == nil {
			return p
		}
		in.offsets = new([InPair + 1]*corpus.Offsets)
		return s.JSON(As[P](p), in)
	}
	k.Data = func(p corpus.Prediction, in Input) any {
		if s.Data == nil {
			return nil
		}
		in.Unit = corpus.Characters // as in all data files
		return s.Data(As[P](p), in)
	}
	k.Answers = func(p corpus.Prediction, in Input, rows nn.Rows, example int, shape []int) []Answer {
		if s.Answers == nil || len(shape) != 2 {
			return nil
		}
		return s.Answers(As[P](p), in, rows, example, shape)
	}
}

// Answer is a part of a prediction that has a score of its own, as one of several labels, or the tag of a word.
type Answer struct {
	Label  string // of the answer: a label, a number, a token or the text of a span
	Word   int    // the word of the example that it is about; -1: the text
	Logits []int  // whose sum is its score: indices in the head's first node of logits
	Texts  []int  // of the batch, that the logits are computed from
}

// inEach returns an answer for each text of an example: the column of logits [B columns].
func inEach(label string, rows nn.Rows, example, column, columns int) []Answer {
	var all []Answer
	for _, b := range textsOf(rows, example) {
		all = append(all, Answer{Label: label, Word: -1, Logits: []int{b*columns + column}, Texts: []int{b}})
	}
	return all
}

// numberLabel writes a number in as many digits as float32 has.
func numberLabel(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }

// Decision is which probabilities of labels make an answer.
type Decision struct {
	// Thresholds are the least probabilities of each label, in place of the head's; NaN leaves the head's.
	Thresholds     []float32
	MinProbability float32 // a less probable label is no answer, whatever the thresholds are
}

// threshold returns that of a label, NaN for that of the head.
func (d Decision) threshold(label int) float32 {
	if d.Thresholds == nil {
		return float32(math.NaN())
	}
	return d.Thresholds[label]
}

// Probability is a probability, written with four digits.
type Probability float64

// MarshalJSON writes a probability as 0.9812; NaN as null.
func (p Probability) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(p)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(p)*1e4)/1e4, 'f', -1, 64), nil
}

// Finite returns v rounded to seven digits, the precision of float32; nil if it is not finite, which JSON cannot hold.
func Finite(v float64) *float64 {
	if !floats.IsFinite(v) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	return &v
}

// Part is a text of an example.
type Part int

// Parts of an example.
const (
	InText Part = iota // Example.Text
	InPair             // Example.Pair
)
