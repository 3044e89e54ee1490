package outputs

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// SampleSpec makes the data that package parttest tests tasks and heads of a kind with. Heads receive texts whose
// hidden states signal the target; tasks read records and evaluate predictions. Text, Right, Wrong, Unseen and Record
// are required.
type SampleSpec[T, P any] struct {
	// Text makes text number i, of some words, and its target, numbered and located.
	Text func(i, words int, labels *corpus.Labels) (*T, SampleText)
	// InWindows returns the located target of a text of n equal windows; nil: the target itself.
	InWindows func(t *T, n int) *T
	// FirstToken returns the located target of a text truncated to its first token; nil: the target itself.
	FirstToken func(t *T) *T
	// Learned reports whether heads learn from a target; nil: from all.
	Learned func(t *T) bool
	// Detached reports that the encoder receives no gradient from heads of the kind.
	Detached bool
	// Check returns an error if an unnamed prediction for an example of rows, of one window, is malformed.
	Check func(p *P, rows nn.Rows, example, labels int) error

	// Record makes the fields of record number i as in data files: the text, as text, as words, or as question and
	// context, and in the kind's Field a target, with the label if the kind has labels.
	Record func(i int, label string, labels []string) map[string]any
	// CheckTarget returns an error if a target that a task made for an example is malformed.
	CheckTarget func(t *T, e *corpus.Example) error
	// Judged makes the target of a text of some words for evaluation by tasks; nil: that of Text.
	Judged func(words int, labels *corpus.Labels) *T
	// Right returns the named prediction that is right for target t.
	Right func(t *T, labels *corpus.Labels) *P
	// Wrong returns a named prediction that is wrong if p is right.
	Wrong func(p *P, labels *corpus.Labels) *P
	// Unseen returns a target for the example of t that no prediction can match.
	Unseen func(t *T) *T
}

// SampleText is a text as an encoder would return it, between an opening and a closing special token.
type SampleText struct {
	WordCount int
	Tokens    []SampleToken
	Second    []SampleToken // the pair's second text, encoded separately; nil for none
}

// SampleToken is a token of a SampleText.
type SampleToken struct {
	Signals []int // features of its hidden state that are raised
	Word    int   // number of the word that it is the first piece of; -1 for none
	Segment int8  // 1 in the second text of a pair
	Hidden  bool  // it is to be predicted
}

// LongestSample is the number of words of the longest text, which is truncated: its last word has no token.
const LongestSample = 7

// SampleWords makes the tokens of a text of some words, of one and two pieces alternately: ends are the signals of the
// special tokens, of returns those of a word.
func SampleWords(words int, ends []int, of func(word int) []int) SampleText {
	text := SampleText{WordCount: words, Tokens: []SampleToken{{Signals: ends, Word: -1}}}
	for w := range words {
		if w == LongestSample-1 {
			continue // truncated
		}
		for piece := range 1 + w%2 {
			token := SampleToken{Signals: of(w), Word: w}
			if piece > 0 {
				token.Word = -1
			}
			text.Tokens = append(text.Tokens, token)
		}
	}
	text.Tokens = append(text.Tokens, SampleToken{Signals: ends, Word: -1})
	return text
}

// sampleSignals makes a text whose tokens all have the same signals.
func sampleSignals(words int, signals ...int) SampleText {
	return SampleWords(words, signals, func(int) []int { return signals })
}

// Sample is a SampleSpec with its types erased; no function is nil.
type Sample struct {
	Text        func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText)
	InWindows   func(t corpus.Target, n int) corpus.Target
	FirstToken  func(t corpus.Target) corpus.Target
	Learned     func(t corpus.Target) bool
	Detached    bool
	Check       func(p corpus.Prediction, rows nn.Rows, example, labels int) error
	Record      func(i int, label string, labels []string) map[string]any
	CheckTarget func(t corpus.Target, e *corpus.Example) error
	Judged      func(i, words int, labels *corpus.Labels) corpus.Target
	Right       func(t corpus.Target, labels *corpus.Labels) corpus.Prediction
	Wrong       func(p corpus.Prediction, labels *corpus.Labels) corpus.Prediction
	Unseen      func(t corpus.Target) corpus.Target
}

// erase returns the sample with its types erased; nil if there is none.
func (s SampleSpec[T, P]) erase() *Sample {
	if s.Text == nil {
		return nil
	}
	if s.Right == nil || s.Wrong == nil || s.Unseen == nil || s.Record == nil {
		panic("outputs: a sample without Right, Wrong, Unseen or Record")
	}
	e := &Sample{Detached: s.Detached, Record: s.Record}
	s.eraseTexts(e)
	e.CheckTarget = func(t corpus.Target, of *corpus.Example) error {
		if s.CheckTarget == nil || t == nil {
			return nil
		}
		return s.CheckTarget(As[T](t), of)
	}
	e.Judged = func(i, words int, labels *corpus.Labels) corpus.Target {
		if s.Judged != nil {
			return s.Judged(words, labels)
		}
		t, _ := s.Text(i, words, labels)
		return t
	}
	e.Right = func(t corpus.Target, labels *corpus.Labels) corpus.Prediction { return s.Right(As[T](t), labels) }
	e.Wrong = func(p corpus.Prediction, labels *corpus.Labels) corpus.Prediction { return s.Wrong(As[P](p), labels) }
	e.Unseen = func(t corpus.Target) corpus.Target { return s.Unseen(As[T](t)) }
	return e
}

// eraseTexts sets the functions over the input of heads.
func (s SampleSpec[T, P]) eraseTexts(e *Sample) {
	e.Text = func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
		t, text := s.Text(i, words, labels)
		return t, text
	}
	e.InWindows = func(t corpus.Target, n int) corpus.Target {
		if s.InWindows == nil || t == nil {
			return t
		}
		return s.InWindows(As[T](t), n)
	}
	e.FirstToken = func(t corpus.Target) corpus.Target {
		if s.FirstToken == nil {
			return t
		}
		if left := s.FirstToken(As[T](t)); left != nil {
			return left
		}
		return nil
	}
	e.Learned = func(t corpus.Target) bool { return s.Learned == nil || s.Learned(As[T](t)) }
	e.Check = func(p corpus.Prediction, rows nn.Rows, example, labels int) error {
		if s.Check == nil {
			return nil
		}
		return s.Check(As[P](p), rows, example, labels)
	}
}
