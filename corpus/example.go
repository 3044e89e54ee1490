package corpus

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

// Place is where in a data file something stands.
type Place struct {
	File  string
	Line  int    // from 1; 0: the whole file
	Entry string // of the line, which may hold several: record 3; "" where it holds one
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

// Span is a stretch of bytes of a text, End exclusive.
type Span struct{ Start, End int }

// Target is what is labelled of an example for one head, a pointer to the target type of an output kind (package
// outputs); nil where nothing is.
type Target any

// Prediction is what one head predicts of an example, a pointer to the prediction type of an output kind (package
// outputs).
type Prediction any

// Example is one text, or a pair of texts, with its targets.
type Example struct {
	Place      Place
	Text, Pair string
	Paired     bool   // Pair is there, even if empty
	Group      string // what it has in common with those it stays with when data is divided; "" where that is not asked
	Words      []Span // of Text: the units that tags belong to; nil where nothing is tagged
	// Targets has one for each head: a task's heads in their order, and where tasks share texts, task after task.
	Targets []Target
	// Windows are the tokens, special ones included, set by Cut.Encode: one encoding, or several where the text is long
	// or its pair is encoded apart.
	Windows []Encoding
}

// Tokens counts the tokens of an example that is encoded.
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
	Offsets    []Span // bytes of Text, or of Pair where Types is 1; special tokens have {0 0}
	Types      []int8 // 1 in the second text of a pair
	TokenTypes []int8 // what encoders are told instead, by a tokenizer whose types are not Types; else nil
	// number of the word in Example.Words that the token belongs to, -1 for none; nil where it has none
	Words  []int32
	Second bool // it is the second text of a pair that is encoded apart
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
	texts    []int // [E+1] example b is texts texts[b]:texts[b+1]
}

// Rows returns where the tokens of example b begin and end.
func (b *Batch) Rows(example int) (from, to int) {
	starts := b.Tokens.Rows.Starts
	return starts[b.texts[example]], starts[b.texts[example+1]]
}
