package outputs

import (
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Answer is a part of a prediction that has a score of its own, as one of several labels, or the tag of a word.
type Answer struct {
	Label  string // of the answer: a label, a number, a token or the text of a span
	Word   int    // the word of the example that it is about; -1: the text
	Logits []int  // whose sum is its score: indices in the head's first node of logits
	Texts  []int  // of the batch, that the logits are computed from
}

// Answers returns the answers in a prediction about an example of rows, given the shape of the head's first node
// of logits, [rows columns]. An answer that is computed in each window of a text is there once for each. It returns nil
// if the kind or the node has none.
func (k *Kind) Answers(p corpus.Prediction, in Input, rows nn.Rows, example int, shape []int) []Answer {
	if k.answers == nil || len(shape) != 2 {
		return nil
	}
	return k.answers(p, in, rows, example, shape)
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
