package corpus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
)

// Place is where in a data file something stands.
type Place struct {
	File string
	Line int // from 1; 0: the whole file
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Span is a stretch of bytes of a text, End exclusive.
type Span struct{ Start, End int }

// Example is one text, or a pair of texts, with the gold answers of the heads that ask about it.
type Example struct {
	Place      Place
	Text, Pair string
	Paired     bool   // Pair is there, even if empty
	Words      []Span // of Text: the units that tags belong to; nil where nothing is tagged
	// Targets has one gold answer a head: a task's heads in their order, and where tasks share texts, task after task.
	Targets  []Target
	Encoding Encoding // set by Encode
}

// Encoding is an example's tokens, special ones included.
type Encoding struct {
	IDs     []int32
	Offsets []Span  // bytes of Text, or of Pair where Types is 1; special tokens have {0 0}
	Types   []int8  // 1 in the second text of a pair
	Words   []int32 // number of the word in Example.Words that the token belongs to; -1 for none
}

// Answer is the kind of answer that a task asks for and a head gives.
type Answer int

const (
	OneLabel   Answer = iota // one of several labels for a text
	TagPerWord               // one tag for each word
)

// String is what an error calls the answer.
func (a Answer) String() string {
	switch a {
	case OneLabel:
		return "one label"
	case TagPerWord:
		return "a tag for each word"
	}
	panic("corpus: unknown answer")
}

// Target is the gold answer of one head for one example; its zero value says that the example is not labelled.
// Tasks set and judge the names; heads see the numbers, which Labels.Number sets.
type Target struct {
	Label string   // one label; "" for none
	Tags  []string // a tag a word, as many as the example has words; "" for a word without one

	LabelID int   // number of Label: Unknown where training has no such label, Unlabelled for none
	TagIDs  []int // numbers of Tags
}

const (
	Unlabelled = -1 // no gold answer here
	Unknown    = -2 // a gold answer that training has not: no loss, judged as wrong
)

// Labelled tells whether there is a gold answer.
func (t Target) Labelled() bool { return t.Label != "" || t.Tags != nil }

// Prediction is a head's answer for one example. Heads set the numbers, Labels.Name the names.
type Prediction struct {
	LabelID       int
	Probabilities []float32 // of each label
	TagIDs        []int     // a tag for each word of the example; -1 for words that no token stands for
	TagShares     []float32 // the probability of each of TagIDs, 0 where that is -1

	Label string
	Tags  []string // words that no token stands for are "O"
}

// Labels is the set of a head's labels, in order: a label's number is its place.
type Labels struct {
	names   []string
	numbers map[string]int
}

// NewLabels returns the set of names, which are all different.
func NewLabels(names []string) *Labels {
	l := &Labels{names: slices.Clone(names), numbers: make(map[string]int, len(names))}
	for i, n := range names {
		if _, twice := l.numbers[n]; twice {
			panic(fmt.Sprintf("corpus: label %q twice", n))
		}
		l.numbers[n] = i
	}
	return l
}

// LabelsOf returns the set of names that a file holds: none, empty ones and doubles are an error.
func LabelsOf(names []string) (*Labels, error) {
	seen := map[string]bool{}
	for _, n := range names {
		if n == "" || seen[n] {
			return nil, fmt.Errorf("label %q is empty or twice there", n)
		}
		seen[n] = true
	}
	if len(names) == 0 {
		return nil, errors.New("no labels")
	}
	return NewLabels(names), nil
}

// Names returns the labels in order.
func (l *Labels) Names() []string { return l.names }

// Number sets the numbers of a target's names.
func (l *Labels) Number(t *Target) {
	t.LabelID = l.number(t.Label)
	t.TagIDs = nil
	if t.Tags != nil {
		t.TagIDs = make([]int, len(t.Tags))
		for i, tag := range t.Tags {
			t.TagIDs[i] = l.number(tag)
		}
	}
}

func (l *Labels) number(name string) int {
	if name == "" {
		return Unlabelled
	}
	if n, ok := l.numbers[name]; ok {
		return n
	}
	return Unknown
}

// Name sets the names of a prediction's numbers.
func (l *Labels) Name(p *Prediction) {
	if p.TagIDs == nil {
		p.Label = l.names[p.LabelID]
		return
	}
	p.Tags = make([]string, len(p.TagIDs))
	for i, id := range p.TagIDs {
		p.Tags[i] = "O"
		if id >= 0 {
			p.Tags[i] = l.names[id]
		}
	}
}

// Tokens is a packed batch: the tokens of its texts one after the other, no padding.
type Tokens struct {
	IDs  []int32 // [T]
	Rows nn.Rows
}

// Batch is some examples of one group of tasks, and their tokens.
type Batch struct {
	Examples []*Example
	Tokens   Tokens
}
