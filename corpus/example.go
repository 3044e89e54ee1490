package corpus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
)

// Place is a position in a data file.
type Place struct {
	File  string
	Line  int    // from 1; 0: the whole file
	Entry string // the entry of a line that holds several, such as "record 3"; else ""
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	if p.Entry == "" {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d, %s", p.File, p.Line, p.Entry)
}

// Span is a range of bytes of a text, End exclusive.
type Span struct{ Start, End int }

// Target is an example's target for one head, a pointer to the target type of an output kind (package outputs); nil if
// the example has none.
type Target any

// Prediction is one head's prediction for an example, a pointer to the prediction type of an output kind (package
// outputs).
type Prediction any

// Example is one text, or a pair of texts, with its targets.
type Example struct {
	Place      Place
	Text, Pair string
	Paired     bool   // the example has a Pair, which may be empty
	Group      string // examples of one group stay together when data is split; "" without groups
	Split      string // that the record names; "" where none does
	Words      []Span // of Text: the units that tags belong to; nil without tags
	WordsGiven bool   // the record has Words; else they were split from its text
	// Transient means that another copy is read each time the example is used, so that nothing is kept for this one.
	Transient bool
	// Written is the text as it was before it was split into Words, if Text has them joined by blanks; "": not known.
	Written string
	// Targets has one target for each head: a task's heads in order, and if tasks share examples, task after task.
	Targets []Target
	// Windows are the tokens, special ones included, that Windowing.Encode returns: one encoding, or several if the
	// text is long or its pair is encoded separately.
	Windows []Encoding
}

// Tokens returns the number of tokens of an encoded example.
func (e *Example) Tokens() int {
	n := 0
	for _, w := range e.Windows {
		n += len(w.IDs)
	}
	return n
}

// Encoding is the tokens of a text or a pair of texts, special ones included.
type Encoding struct {
	IDs        []int32
	Offsets    []Span // bytes of Text, or of Pair where Segments is 1; special tokens have {0 0}
	Segments   []int8 // 1 in the second text of a pair
	TokenTypes []int8 // the encoder's token types, if these are not Segments; else nil
	// the index in Example.Words of the word that each token belongs to, -1 for none; nil without words
	Words  []int32
	Second bool // it is the second text of a pair whose texts are encoded separately
}

// Tokens is a packed batch: the tokens of its texts concatenated, without padding.
type Tokens struct {
	IDs  []int32 // [T]
	Rows nn.Rows
}

// Batch is a batch of examples of one group of tasks, and their tokens.
type Batch struct {
	Examples []*Example
	Tokens   Tokens
	texts    []int // [E+1] example b has the texts texts[b]:texts[b+1]
}

// Rows returns the rows of an example's tokens, to exclusive.
func (b *Batch) Rows(example int) (from, to int) {
	starts := b.Tokens.Rows.Starts
	return starts[b.texts[example]], starts[b.texts[example+1]]
}

// Labels is the ordered set of a head's labels: a label's number is its index.
type Labels struct {
	names   []string
	numbers map[string]int
}

// NewLabels returns the set of names. It panics on empty and duplicate ones.
func NewLabels(names []string) *Labels {
	l, err := ParseLabels(names)
	if err != nil {
		panic("corpus: " + err.Error())
	}
	return l
}

// ParseLabels returns the set of names that a file holds: empty and duplicate names are errors.
func ParseLabels(names []string) (*Labels, error) {
	l := &Labels{names: slices.Clone(names), numbers: make(map[string]int, len(names))}
	for i, n := range names {
		if n == "" {
			return nil, errors.New("a label is empty")
		}
		if _, twice := l.numbers[n]; twice {
			return nil, fmt.Errorf("duplicate label %q", n)
		}
		l.numbers[n] = i
	}
	return l, nil
}

// Names returns the labels in order.
func (l *Labels) Names() []string { return l.names }

// Numbers for labels outside a set.
const (
	Unlabelled = -1 // no label
	Unknown    = -2 // a label outside the set, which the training split does not have
)

// ID returns the number of a label, Unknown if the set does not have it, Unlabelled for "".
func (l *Labels) ID(name string) int {
	if name == "" {
		return Unlabelled
	}
	if n, ok := l.numbers[name]; ok {
		return n
	}
	return Unknown
}

// IDs returns the number of each label, nil for nil.
func (l *Labels) IDs(names []string) []int {
	if names == nil {
		return nil
	}
	ids := make([]int, len(names))
	for i, name := range names {
		ids[i] = l.ID(name)
	}
	return ids
}

// Name returns the label with a number of the set.
func (l *Labels) Name(id int) string { return l.names[id] }
