package parttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Sample makes the data that tasks and heads of a kind of outputs are tested with, as targets and predictions of the
// kind's types. Heads receive texts whose hidden states signal the target; tasks read records and evaluate predictions.
// Text and Right are required.
type Sample struct {
	// Text makes text number i, of some words, and its target, numbered and located. Of texts that follow each other
	// some have other targets.
	Text func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText)
	// Right returns the named prediction that is right for a target.
	Right func(t corpus.Target, labels *corpus.Labels) corpus.Prediction
	// Check returns an error if an unnamed prediction for an example of rows, of one window, is malformed.
	Check func(p corpus.Prediction, rows nn.Rows, example, labels int) error

	// InWindows returns the located target of a text of n equal windows; nil: the target itself.
	InWindows func(t corpus.Target, n int) corpus.Target
	// FirstToken returns the located target of a text truncated to its first token; nil: the target itself.
	FirstToken func(t corpus.Target) corpus.Target
	// Learned reports whether heads learn from a target; nil: from all.
	Learned func(t corpus.Target) bool
	// Detached reports that the encoder receives no gradient from heads of the kind.
	Detached bool

	// Data returns what a data file has in the kind's Field for a target; nil: the kind's own Data of what is right.
	Data func(t corpus.Target) any
	// CheckTarget returns an error if a target that a task made for an example is malformed.
	CheckTarget func(t corpus.Target, e *corpus.Example) error
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

func signalled(words int, signals ...int) SampleText {
	return SampleWords(words, signals, func(int) []int { return signals })
}

// AddSample adds the data that tasks and heads of a kind of outputs are tested with, the kind of another module in one
// of its test files.
func AddSample(kind *outputs.Kind, s Sample) {
	if s.Text == nil || s.Right == nil {
		panic("parttest: a sample without Text or Right")
	}
	samples[kind] = s
}

// sampleOf returns the sample of a kind, which must have one.
func sampleOf(t *testing.T, kind *outputs.Kind) Sample {
	t.Helper()
	s, found := samples[kind]
	if !found {
		t.Fatalf("outputs of kind %q have no sample to test them with: AddSample adds it", kind.Name)
	}
	return s
}

// labels are the labels of the heads; as tags of words they mark spans.
var labels = []string{"O", "B-x", "I-x"}

// target returns that of text number i of some words, and the prediction that is right for it.
func (s Sample) target(i, words int) (corpus.Target, corpus.Prediction) {
	set := corpus.NewLabels(labels)
	target, _ := s.Text(i, words, set)
	return target, s.Right(target, set)
}

// Predictions returns a right and a wrong prediction, named, of a kind of outputs that has a sample, for its text
// number i of some words. Its labels are O, B-x and I-x. The wrong one is right for a later text.
func Predictions(kind *outputs.Kind, i, words int) (right, wrong corpus.Prediction) {
	_, right = samples[kind].target(i, words)
	for later := i + 1; later < i+9; later++ {
		if _, wrong = samples[kind].target(later, words); !reflect.DeepEqual(wrong, right) {
			return right, wrong
		}
	}
	panic(fmt.Sprintf("parttest: the sample of outputs of kind %q has the same target for nine texts", kind.Name))
}

// pair is the second text of the examples, and the context of questions.
const pair = "a red kite"

// record returns record number i of a data file: a text of three words, and the target of text number i.
func (s Sample) record(t *testing.T, kind *outputs.Kind, i int) corpus.Record {
	t.Helper()
	fields := map[string]any{"text": "a red kite"}
	switch {
	case kind.PerWord:
		fields = map[string]any{"words": strings.Fields("a red kite")}
	case kind.FromContext:
		fields = map[string]any{"question": "what flies?", "context": pair}
	case kind.Separate:
		fields["pair"] = pair
	}
	target, right := s.target(i, 3)
	if s.Data != nil {
		fields[kind.Field] = s.Data(target)
	} else if data := kind.Data(right, Input(t, 0)); data != nil {
		fields[kind.Field] = data
	}

	line, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	read, _ := corpus.ParseJSON(string(line))
	return corpus.Record{Place: corpus.Place{File: "data.jsonl", Line: i + 1}, Fields: read.(map[string]any)}
}

var samples = map[*outputs.Kind]Sample{
	outputs.Label: {
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			id := i % len(labels.Names())
			return &outputs.LabelTarget{Label: labels.Name(id), ID: id}, signalled(words, id)
		},
		Right: func(t corpus.Target, labels *corpus.Labels) corpus.Prediction {
			target := outputs.As[outputs.LabelTarget](t)
			return &outputs.LabelPrediction{ID: target.ID, Probabilities: sure(labels, target.ID), Label: target.Label}
		},
		Check: func(prediction corpus.Prediction, _ nn.Rows, _, labels int) error {
			p := outputs.As[outputs.LabelPrediction](prediction)
			if p.ID < 0 || p.ID >= labels || len(p.Probabilities) != labels {
				return fmt.Errorf("label %d with %d probabilities, of %d labels", p.ID, len(p.Probabilities), labels)
			}
			return nil
		},
	},
	outputs.Labels: {
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			t := &outputs.LabelsTarget{Labels: []string{}}
			for c, label := range labels.Names() {
				if (i+1)>>c&1 == 1 {
					t.Labels = append(t.Labels, label)
				}
			}
			t.IDs = labels.IDs(t.Labels)
			return t, signalled(words, t.IDs...)
		},
		Right: func(t corpus.Target, labels *corpus.Labels) corpus.Prediction {
			target := outputs.As[outputs.LabelsTarget](t)
			return &outputs.LabelsPrediction{
				IDs: target.IDs, Probabilities: sure(labels, target.IDs...), Labels: target.Labels,
			}
		},
		Check: func(prediction corpus.Prediction, _ nn.Rows, _, labels int) error {
			p := outputs.As[outputs.LabelsPrediction](prediction)
			if p.IDs == nil || len(p.Probabilities) != labels {
				return fmt.Errorf("labels %v with %d probabilities, of %d labels", p.IDs, len(p.Probabilities), labels)
			}
			for i, id := range p.IDs {
				if id < 0 || id >= labels || i > 0 && id <= p.IDs[i-1] {
					return fmt.Errorf("labels %v, want ascending numbers below %d", p.IDs, labels)
				}
			}
			return nil
		},
	},
	outputs.Tags: {
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			names := labels.Names()
			t := &outputs.TagsTarget{Tags: make([]string, words)}
			for w := range t.Tags {
				t.Tags[w] = names[(i%2+w)%len(names)] // from the first label or the second on
			}
			t.IDs = labels.IDs(t.Tags)
			return t, SampleWords(words, nil, func(w int) []int { return []int{t.IDs[w]} })
		},
		Right: func(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
			target := outputs.As[outputs.TagsTarget](t)
			probabilities := slices.Repeat([]float32{1}, len(target.IDs))
			return &outputs.TagsPrediction{IDs: target.IDs, Probabilities: probabilities, Tags: target.Tags}
		},
		Check: checkTags,
		CheckTarget: func(t corpus.Target, e *corpus.Example) error {
			if n := len(outputs.As[outputs.TagsTarget](t).Tags); n != len(e.Words) {
				return fmt.Errorf("%d tags for %d words", n, len(e.Words))
			}
			return nil
		},
	},
	outputs.Number: {
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			v := i % len(labels.Names())
			return &outputs.NumberTarget{Value: float64(v)}, signalled(words, v)
		},
		Right: rightNumber, Check: checkNumber,
	},
	outputs.Similarity: {
		// A text and a second one, of the same signal if they are similar.
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			n := len(labels.Names())
			v := i % n
			text := signalled(words, v)
			other := SampleToken{Signals: []int{(i + v) % n}, Word: -1}
			text.Second = []SampleToken{other, other}
			return &outputs.NumberTarget{Value: float64(v)}, text
		},
		Right: rightNumber, Check: checkNumber,
	},
	outputs.Anomaly: {
		// Of each run of as many texts as there are labels, the last is an anomaly.
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			v := i % len(labels.Names()) / (len(labels.Names()) - 1)
			return &outputs.AnomalyTarget{Anomalous: v == 1}, signalled(words, v)
		},
		Right: func(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
			return &outputs.AnomalyPrediction{Distance: map[bool]float64{true: 1}[anomalous(t)]}
		},
		Check: func(p corpus.Prediction, _ nn.Rows, _, _ int) error {
			return checkFinite(outputs.As[outputs.AnomalyPrediction](p).Distance)
		},
		Learned:  func(t corpus.Target) bool { return !anomalous(t) },
		Detached: true,
		Data:     func(t corpus.Target) any { return map[bool]string{false: "normal", true: "odd"}[anomalous(t)] },
	},
	outputs.Span: {
		Text: spanText,
		Right: func(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
			return &outputs.SpanPrediction{Probability: 1, Answer: outputs.As[outputs.SpanTarget](t).Answers[0]}
		},
		Check: func(p corpus.Prediction, rows nn.Rows, example, _ int) error {
			at, n := outputs.As[outputs.SpanPrediction](p), rows.Starts[example+1]-rows.Starts[example]
			if s := at.Tokens; s.Start < 0 || s.End < s.Start || s.End > n || at.Window != 0 {
				return fmt.Errorf("tokens %v of window %d, of %d", s, at.Window, n)
			}
			return nil
		},
		InWindows: func(t corpus.Target, n int) corpus.Target {
			one := outputs.As[outputs.SpanTarget](t)
			return &outputs.SpanTarget{Answers: one.Answers, Tokens: slices.Repeat(one.Tokens, n)}
		},
		FirstToken: func(t corpus.Target) corpus.Target {
			return &outputs.SpanTarget{
				Answers: outputs.As[outputs.SpanTarget](t).Answers, Tokens: make([]corpus.Span, 1),
			}
		},
	},
	outputs.HiddenTokens: {
		// The first piece of each word that is not truncated is hidden.
		Text: func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
			t := &outputs.HiddenTarget{IDs: make([]int32, min(words, LongestSample-1))}
			for w := range t.IDs {
				t.IDs[w] = int32((i + w) % len(labels.Names()))
			}
			text := SampleWords(words, nil, func(w int) []int { return []int{int(t.IDs[w])} })
			for k := range text.Tokens {
				text.Tokens[k].Hidden = text.Tokens[k].Word >= 0
			}
			return t, text
		},
		Right: func(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
			p := &outputs.HiddenPrediction{}
			for _, id := range outputs.As[outputs.HiddenTarget](t).IDs {
				p.Tokens = append(p.Tokens, outputs.HiddenToken{Guesses: []outputs.Guess{{ID: id, Probability: 1}}})
			}
			return p
		},
		Check: func(p corpus.Prediction, rows nn.Rows, example, _ int) error {
			hidden := 0
			for _, row := range rows.Hidden {
				if row >= rows.Starts[example] && row < rows.Starts[example+1] {
					hidden++
				}
			}
			if n := len(outputs.As[outputs.HiddenPrediction](p).Tokens); n != hidden {
				return fmt.Errorf("%d guesses for %d hidden tokens", n, hidden)
			}
			return nil
		},
		FirstToken: func(corpus.Target) corpus.Target { return nil },
	},
}

// sure returns the probability 1 for each of the labels that hold, 0 for others.
func sure(labels *corpus.Labels, holds ...int) []float32 {
	probabilities := make([]float32, len(labels.Names()))
	for _, id := range holds {
		probabilities[id] = 1
	}
	return probabilities
}

// checkTags requires a tag for each word, below 0 exactly for words without a token.
func checkTags(prediction corpus.Prediction, rows nn.Rows, example, labels int) error {
	p := outputs.As[outputs.TagsPrediction](prediction)
	if len(p.IDs) != rows.WordCount[example] {
		return fmt.Errorf("%d tags for %d words", len(p.IDs), rows.WordCount[example])
	}
	hasRow := make([]bool, rows.WordCount[example])
	for k, row := range rows.Words {
		if row >= rows.Starts[example] && row < rows.Starts[example+1] {
			hasRow[rows.WordIndex[k]] = true
		}
	}
	for w, tag := range p.IDs {
		if tag >= labels || hasRow[w] != (tag >= 0) {
			return fmt.Errorf("tag %d for word %d; %d tags, -1 for words without a token", tag, w, labels)
		}
	}
	return nil
}

func rightNumber(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
	return &outputs.NumberPrediction{Value: outputs.As[outputs.NumberTarget](t).Value}
}

func checkNumber(p corpus.Prediction, _ nn.Rows, _, _ int) error {
	return checkFinite(outputs.As[outputs.NumberPrediction](p).Value)
}

func checkFinite(v float64) error {
	if !floats.IsFinite(v) {
		return fmt.Errorf("the number is %v, want a finite one", v)
	}
	return nil
}

func anomalous(t corpus.Target) bool { return outputs.As[outputs.AnomalyTarget](t).Anomalous }

// spanText makes a question of one token and a context, of which one or two tokens are the answer.
func spanText(i, words int, _ *corpus.Labels) (corpus.Target, SampleText) {
	const question = 3 // [CLS], the question, [SEP]
	context, at := words+2, question+i%words
	tokens := corpus.Span{Start: at, End: at + 1 + context%2}
	var text SampleText
	for row := range question + context + 1 {
		token := SampleToken{Signals: []int{2}, Word: -1}
		if row >= question {
			token.Segment = 1
		}
		switch row {
		case tokens.Start:
			token.Signals[0] = 0
		case tokens.End - 1:
			token.Signals[0] = 1
		}
		text.Tokens = append(text.Tokens, token)
	}
	answer := corpus.Span{Start: []int{len("a "), len("a red ")}[i%2], End: len(pair)}
	return &outputs.SpanTarget{
		Answers: []corpus.TextSpan{{Text: pair[answer.Start:], Span: answer}}, Tokens: []corpus.Span{tokens},
	}, text
}
