package parttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Sample makes the data that tasks and heads of a kind of outputs are tested with. Heads receive texts whose hidden
// states signal the target; tasks read records and evaluate predictions. Text, Right, Wrong, Unseen and Record are
// required.
type Sample[T, P any] struct {
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

func signalled(words int, signals ...int) SampleText {
	return SampleWords(words, signals, func(int) []int { return signals })
}

// sample is a Sample with its types erased; no function is nil.
type sample struct {
	text        func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText)
	inWindows   func(t corpus.Target, n int) corpus.Target
	firstToken  func(t corpus.Target) corpus.Target
	learned     func(t corpus.Target) bool
	detached    bool
	check       func(p corpus.Prediction, rows nn.Rows, example, labels int) error
	record      func(i int, label string, labels []string) map[string]any
	checkTarget func(t corpus.Target, e *corpus.Example) error
	judged      func(i, words int, labels *corpus.Labels) corpus.Target
	right       func(t corpus.Target, labels *corpus.Labels) corpus.Prediction
	wrong       func(p corpus.Prediction, labels *corpus.Labels) corpus.Prediction
	unseen      func(t corpus.Target) corpus.Target
}

var samples = map[*outputs.Kind]*sample{}

// AddSample adds the data that tasks and heads of a kind of outputs are tested with, the kind of another module in one
// of its test files.
func AddSample[T, P any](kind *outputs.Kind, s Sample[T, P]) {
	if s.Text == nil || s.Right == nil || s.Wrong == nil || s.Unseen == nil || s.Record == nil {
		panic("parttest: a sample without Text, Right, Wrong, Unseen or Record")
	}
	e := &sample{detached: s.Detached, record: s.Record}
	s.eraseTexts(e)
	e.checkTarget = func(t corpus.Target, of *corpus.Example) error {
		if s.CheckTarget == nil || t == nil {
			return nil
		}
		return s.CheckTarget(outputs.As[T](t), of)
	}
	e.judged = func(i, words int, labels *corpus.Labels) corpus.Target {
		if s.Judged != nil {
			return s.Judged(words, labels)
		}
		t, _ := s.Text(i, words, labels)
		return t
	}
	e.right = func(t corpus.Target, labels *corpus.Labels) corpus.Prediction {
		return s.Right(outputs.As[T](t), labels)
	}
	e.wrong = func(p corpus.Prediction, labels *corpus.Labels) corpus.Prediction {
		return s.Wrong(outputs.As[P](p), labels)
	}
	e.unseen = func(t corpus.Target) corpus.Target { return s.Unseen(outputs.As[T](t)) }
	samples[kind] = e
}

// eraseTexts sets the functions over the input of heads.
func (s Sample[T, P]) eraseTexts(e *sample) {
	e.text = func(i, words int, labels *corpus.Labels) (corpus.Target, SampleText) {
		t, text := s.Text(i, words, labels)
		return t, text
	}
	e.inWindows = func(t corpus.Target, n int) corpus.Target {
		if s.InWindows == nil || t == nil {
			return t
		}
		return s.InWindows(outputs.As[T](t), n)
	}
	e.firstToken = func(t corpus.Target) corpus.Target {
		if s.FirstToken == nil {
			return t
		}
		if left := s.FirstToken(outputs.As[T](t)); left != nil {
			return left
		}
		return nil
	}
	e.learned = func(t corpus.Target) bool { return s.Learned == nil || s.Learned(outputs.As[T](t)) }
	e.check = func(p corpus.Prediction, rows nn.Rows, example, labels int) error {
		if s.Check == nil {
			return nil
		}
		return s.Check(outputs.As[P](p), rows, example, labels)
	}
}

// Predictions returns a right and a wrong prediction, named, of a kind of outputs that has a sample, for its text
// number i of some words. Its labels are O, B-x and I-x.
func Predictions(kind *outputs.Kind, i, words int) (right, wrong corpus.Prediction) {
	s, set := samples[kind], corpus.NewLabels(labels)
	right = s.right(s.judged(i, words, set), set)
	return right, s.wrong(right, set)
}

func init() {
	AddSample(outputs.Label, labelSample)
	AddSample(outputs.Labels, labelsSample)
	AddSample(outputs.Tags, tagsSample)
	AddSample(outputs.Number, numberSample)
	AddSample(outputs.Similarity, similaritySample)
	AddSample(outputs.Anomaly, anomalySample)
	AddSample(outputs.Span, spanSample)
	AddSample(outputs.HiddenTokens, hiddenSample)
}

var labelSample = Sample[outputs.LabelTarget, outputs.LabelPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*outputs.LabelTarget, SampleText) {
		id := i % len(labels.Names())
		return &outputs.LabelTarget{Label: labels.Name(id), ID: id}, signalled(words, id)
	},
	Check: func(p *outputs.LabelPrediction, _ nn.Rows, _, labels int) error {
		if p.ID < 0 || p.ID >= labels || len(p.Probabilities) != labels {
			return fmt.Errorf("label %d with %d probabilities, of %d labels", p.ID, len(p.Probabilities), labels)
		}
		return nil
	},
	Record: func(_ int, label string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "label": label}
	},
	Right: func(t *outputs.LabelTarget, labels *corpus.Labels) *outputs.LabelPrediction {
		return sureLabel(t.ID, labels)
	},
	Wrong: func(p *outputs.LabelPrediction, labels *corpus.Labels) *outputs.LabelPrediction {
		return sureLabel((p.ID+1)%len(labels.Names()), labels)
	},
	Unseen: func(*outputs.LabelTarget) *outputs.LabelTarget {
		return &outputs.LabelTarget{Label: "unseen", ID: corpus.Unknown}
	},
}

func sureLabel(id int, labels *corpus.Labels) *outputs.LabelPrediction {
	p := &outputs.LabelPrediction{ID: id, Probabilities: make([]float32, len(labels.Names())), Label: labels.Name(id)}
	p.Probabilities[id] = 1
	return p
}

var labelsSample = Sample[outputs.LabelsTarget, outputs.LabelsPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*outputs.LabelsTarget, SampleText) {
		t := &outputs.LabelsTarget{Labels: []string{}}
		for c, label := range labels.Names() {
			if (i+1)>>c&1 == 1 {
				t.Labels = append(t.Labels, label)
			}
		}
		t.IDs = labels.IDs(t.Labels)
		return t, signalled(words, t.IDs...)
	},
	Check: func(p *outputs.LabelsPrediction, _ nn.Rows, _, labels int) error {
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
	Record: func(i int, label string, labels []string) map[string]any {
		return map[string]any{"text": "a red kite", "labels": []any{label, labels[0]}[:min(i, 1)+1]}
	},
	Right: func(t *outputs.LabelsTarget, labels *corpus.Labels) *outputs.LabelsPrediction {
		return sureLabels(func(c int) bool { return slices.Contains(t.IDs, c) }, labels)
	},
	Wrong: func(p *outputs.LabelsPrediction, labels *corpus.Labels) *outputs.LabelsPrediction {
		return sureLabels(func(c int) bool { return !slices.Contains(p.IDs, c) }, labels)
	},
	Unseen: func(*outputs.LabelsTarget) *outputs.LabelsTarget {
		return &outputs.LabelsTarget{Labels: []string{"unseen"}, IDs: []int{corpus.Unknown}}
	},
}

// sureLabels is the prediction of the labels that hold, with probability 1.
func sureLabels(holds func(c int) bool, labels *corpus.Labels) *outputs.LabelsPrediction {
	p := &outputs.LabelsPrediction{IDs: []int{}, Probabilities: make([]float32, len(labels.Names()))}
	for c := range labels.Names() {
		if holds(c) {
			p.IDs, p.Probabilities[c] = append(p.IDs, c), 1
		}
	}
	outputs.Labels.NamePrediction(p, nil, labels)
	return p
}

var tagsSample = Sample[outputs.TagsTarget, outputs.TagsPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*outputs.TagsTarget, SampleText) {
		names := labels.Names()
		t := &outputs.TagsTarget{Tags: make([]string, words)}
		for w := range t.Tags {
			t.Tags[w] = names[(i%2+w)%len(names)] // from the first label or the second on
		}
		t.IDs = labels.IDs(t.Tags)
		return t, SampleWords(words, nil, func(w int) []int { return []int{t.IDs[w]} })
	},
	Check: checkTags,
	Record: func(int, string, []string) map[string]any {
		return map[string]any{"words": []any{"a", "red", "kite"}, "tags": []any{"O", "B-x", "I-x"}}
	},
	CheckTarget: func(t *outputs.TagsTarget, e *corpus.Example) error {
		if len(t.Tags) != len(e.Words) {
			return fmt.Errorf("%d tags for %d words", len(t.Tags), len(e.Words))
		}
		return nil
	},
	Judged: func(words int, labels *corpus.Labels) *outputs.TagsTarget { // tags that mark spans
		t := &outputs.TagsTarget{Tags: []string{"O", "B-x", "I-x", "O", "B-x", "O", "O"}[:words]}
		if words < 3 {
			t.Tags = []string{"B-x", "I-x"}[:words]
		}
		t.IDs = labels.IDs(t.Tags)
		return t
	},
	Right: func(t *outputs.TagsTarget, labels *corpus.Labels) *outputs.TagsPrediction {
		p := &outputs.TagsPrediction{IDs: slices.Clone(t.IDs), Probabilities: slices.Repeat([]float32{1}, len(t.IDs))}
		outputs.Tags.NamePrediction(p, nil, labels)
		return p
	},
	Wrong: func(p *outputs.TagsPrediction, labels *corpus.Labels) *outputs.TagsPrediction { // no word is in a span
		n := len(p.IDs)
		wrong := &outputs.TagsPrediction{IDs: slices.Repeat([]int{-1}, n), Probabilities: make([]float32, n)}
		outputs.Tags.NamePrediction(wrong, nil, labels)
		return wrong
	},
	Unseen: func(t *outputs.TagsTarget) *outputs.TagsTarget {
		unseen := &outputs.TagsTarget{Tags: slices.Clone(t.Tags), IDs: slices.Clone(t.IDs)}
		unseen.Tags[0], unseen.IDs[0] = "B-unseen", corpus.Unknown
		return unseen
	},
}

// checkTags requires a tag for each word, below 0 exactly for words without a token.
func checkTags(p *outputs.TagsPrediction, rows nn.Rows, example, labels int) error {
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

var spanSample = Sample[outputs.SpanTarget, outputs.SpanPrediction]{
	// A question of one token and a context, of which one or two tokens are the answer.
	Text: func(i, words int, _ *corpus.Labels) (*outputs.SpanTarget, SampleText) {
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
		return &outputs.SpanTarget{
			Answers: []corpus.TextSpan{{Text: "answer"}}, Tokens: []corpus.Span{tokens},
		}, text
	},
	InWindows: func(t *outputs.SpanTarget, n int) *outputs.SpanTarget {
		all := &outputs.SpanTarget{Answers: t.Answers}
		for range n {
			all.Tokens = append(all.Tokens, t.Tokens...)
		}
		return all
	},
	FirstToken: func(t *outputs.SpanTarget) *outputs.SpanTarget {
		return &outputs.SpanTarget{Answers: t.Answers, Tokens: make([]corpus.Span, 1)}
	},
	Check: func(p *outputs.SpanPrediction, rows nn.Rows, example, _ int) error {
		s, n := p.Tokens, rows.Starts[example+1]-rows.Starts[example]
		if s.Start < 0 || s.End < s.Start || s.End > n || p.Window != 0 {
			return fmt.Errorf("tokens %v of window %d, of %d", s, p.Window, n)
		}
		return nil
	},
	Record: func(i int, _ string, _ []string) map[string]any {
		answers := []any{"red kite", "kite"}[:1+i%2]
		return map[string]any{"question": "what flies?", "context": "a red kite", "answers": answers}
	},
	Right: func(t *outputs.SpanTarget, _ *corpus.Labels) *outputs.SpanPrediction {
		return &outputs.SpanPrediction{Probability: 1, Answer: t.Answers[0]}
	},
	Wrong: func(*outputs.SpanPrediction, *corpus.Labels) *outputs.SpanPrediction {
		return &outputs.SpanPrediction{Probability: 1, Answer: corpus.TextSpan{Text: "nothing"}}
	},
	Unseen: func(*outputs.SpanTarget) *outputs.SpanTarget {
		return &outputs.SpanTarget{Answers: []corpus.TextSpan{{Text: "unseen"}}}
	},
}

var hiddenSample = Sample[outputs.HiddenTarget, outputs.HiddenPrediction]{
	// The first piece of each word that is not truncated is hidden.
	Text: func(i, words int, labels *corpus.Labels) (*outputs.HiddenTarget, SampleText) {
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
	FirstToken: func(*outputs.HiddenTarget) *outputs.HiddenTarget { return nil },
	Check: func(p *outputs.HiddenPrediction, rows nn.Rows, example, _ int) error {
		hidden := 0
		for _, row := range rows.Hidden {
			if row >= rows.Starts[example] && row < rows.Starts[example+1] {
				hidden++
			}
		}
		if len(p.Tokens) != hidden {
			return fmt.Errorf("%d guesses for %d hidden tokens", len(p.Tokens), hidden)
		}
		return nil
	},
	Record: func(_ int, label string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "label": label}
	},
	Right: func(t *outputs.HiddenTarget, _ *corpus.Labels) *outputs.HiddenPrediction {
		p := &outputs.HiddenPrediction{}
		for _, id := range t.IDs {
			p.Tokens = append(p.Tokens, outputs.HiddenToken{Guesses: []outputs.Guess{{ID: id, Probability: 1}}})
		}
		return p
	},
	Wrong: func(p *outputs.HiddenPrediction, _ *corpus.Labels) *outputs.HiddenPrediction {
		wrong := &outputs.HiddenPrediction{Tokens: slices.Clone(p.Tokens)}
		for i, h := range p.Tokens {
			wrong.Tokens[i].Guesses = []outputs.Guess{{ID: h.Guesses[0].ID + 1, Probability: 1}}
		}
		return wrong
	},
	Unseen: func(t *outputs.HiddenTarget) *outputs.HiddenTarget {
		return &outputs.HiddenTarget{IDs: slices.Repeat([]int32{99}, len(t.IDs))}
	},
}

var numberSample = Sample[outputs.NumberTarget, outputs.NumberPrediction]{
	Text: func(i, words int, labels *corpus.Labels) (*outputs.NumberTarget, SampleText) {
		v := i % len(labels.Names())
		return &outputs.NumberTarget{Value: float64(v)}, signalled(words, v)
	},
	Check: func(p *outputs.NumberPrediction, _ nn.Rows, _, _ int) error { return checkFinite(p.Value) },
	Record: func(i int, _ string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "value": json.Number(strconv.Itoa(i))}
	},
	Right: func(t *outputs.NumberTarget, _ *corpus.Labels) *outputs.NumberPrediction {
		return &outputs.NumberPrediction{Value: t.Value}
	},
	Wrong: func(p *outputs.NumberPrediction, _ *corpus.Labels) *outputs.NumberPrediction {
		return &outputs.NumberPrediction{Value: -p.Value}
	},
	Unseen: func(*outputs.NumberTarget) *outputs.NumberTarget { return &outputs.NumberTarget{Value: 1e3} },
}

func checkFinite(v float64) error {
	if !floats.IsFinite(v) {
		return fmt.Errorf("the number is %v, want a finite one", v)
	}
	return nil
}

var similaritySample = Sample[outputs.NumberTarget, outputs.NumberPrediction]{
	// A text and a second one, of the same signal if they are similar.
	Text: func(i, words int, labels *corpus.Labels) (*outputs.NumberTarget, SampleText) {
		n := len(labels.Names())
		v := i % n
		text := signalled(words, v)
		other := SampleToken{Signals: []int{(i + v) % n}, Word: -1}
		text.Second = []SampleToken{other, other}
		return &outputs.NumberTarget{Value: float64(v)}, text
	},
	Check: numberSample.Check,
	Record: func(i int, _ string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "pair": "a kite", "value": json.Number(strconv.Itoa(i))}
	},
	Right: numberSample.Right, Wrong: numberSample.Wrong, Unseen: numberSample.Unseen,
}

var anomalySample = Sample[outputs.AnomalyTarget, outputs.AnomalyPrediction]{
	// Of each run of as many texts as there are labels, the last is an anomaly.
	Text: func(i, words int, labels *corpus.Labels) (*outputs.AnomalyTarget, SampleText) {
		v := i % len(labels.Names()) / (len(labels.Names()) - 1)
		return &outputs.AnomalyTarget{Anomalous: v == 1}, signalled(words, v)
	},
	Learned:  func(t *outputs.AnomalyTarget) bool { return !t.Anomalous },
	Detached: true,
	Check:    func(p *outputs.AnomalyPrediction, _ nn.Rows, _, _ int) error { return checkFinite(p.Distance) },
	Record: func(i int, _ string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "label": []string{"normal", "odd"}[i%2]}
	},
	Right: func(t *outputs.AnomalyTarget, _ *corpus.Labels) *outputs.AnomalyPrediction {
		return &outputs.AnomalyPrediction{Distance: map[bool]float64{true: 1}[t.Anomalous]}
	},
	Wrong: func(p *outputs.AnomalyPrediction, _ *corpus.Labels) *outputs.AnomalyPrediction {
		return &outputs.AnomalyPrediction{Distance: -p.Distance}
	},
	Unseen: func(*outputs.AnomalyTarget) *outputs.AnomalyTarget { return &outputs.AnomalyTarget{Anomalous: true} },
}
