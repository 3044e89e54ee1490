package outputs_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// rows are those of two examples: the first has two windows, [CLS] a b [SEP] and [CLS] b c [SEP], the second one,
// [CLS] d [SEP].
var rows = nn.Rows{
	Starts: []int{0, 4, 8, 11}, Example: []int{0, 0, 1}, Hidden: []int{2, 6, 9},
	Words: []int{1, 2, 5, 6, 9}, WordIndex: []int{0, 1, 1, 2, 0}, WordCount: []int{3, 3, 1},
}

// letters is a tokenizer whose token of id 0 is A.
type letters struct{ corpus.Tokenizer }

func (letters) Token(id int32) string { return string(rune('A' + id)) }

func TestAnswersOfPredictions(t *testing.T) {
	guess := func(ids ...int32) *outputs.HiddenPrediction {
		p := &outputs.HiddenPrediction{}
		for _, id := range ids {
			p.Tokens = append(p.Tokens, outputs.HiddenToken{Guesses: []outputs.Guess{{ID: id}}})
		}
		return p
	}
	extracted := &outputs.SpanPrediction{Window: 1, Tokens: corpus.Span{Start: 1, End: 3},
		Answer: corpus.TextSpan{Text: "b c"}}
	none := &outputs.LabelsPrediction{IDs: []int{}, Probabilities: []float32{0.1, 0.2, 0.4, 0.3}}
	in := outputs.Input{Labels: corpus.NewLabels([]string{"O", "x", "y", "z"}), Tokenizer: letters{}}
	type answers = []outputs.Answer
	for _, c := range []struct {
		name    string
		kind    *outputs.Kind
		p       corpus.Prediction
		example int
		shape   []int
		want    answers
	}{
		{"the label in each window", outputs.Label, &outputs.LabelPrediction{ID: 2}, 0, []int{3, 4},
			answers{{"y", -1, []int{2}, []int{0}}, {"y", -1, []int{6}, []int{1}}}},
		{"the label of the second example", outputs.Label, &outputs.LabelPrediction{ID: 2}, 1, []int{3, 4},
			answers{{"y", -1, []int{10}, []int{2}}}},
		{"the labels", outputs.Labels, &outputs.LabelsPrediction{IDs: []int{1, 3}}, 1, []int{3, 4},
			answers{{"x", -1, []int{9}, []int{2}}, {"z", -1, []int{11}, []int{2}}}},
		{"the likeliest of labels that do not hold", outputs.Labels, none, 1, []int{3, 4},
			answers{{"y", -1, []int{10}, []int{2}}}},
		// the tag of b is from its first window
		{"tags of words", outputs.Tags, &outputs.TagsPrediction{IDs: []int{1, 1, 1}}, 0, []int{5, 2},
			answers{{"x", 0, []int{1}, []int{0}}, {"x", 1, []int{3}, []int{0}}, {"x", 2, []int{7}, []int{1}}}},
		{"words outside of spans", outputs.Tags, &outputs.TagsPrediction{IDs: []int{1, 0, 0}}, 0, []int{5, 2},
			answers{{"x", 0, []int{1}, []int{0}}}},
		{"a word without a row", outputs.Tags, &outputs.TagsPrediction{IDs: []int{-1}}, 1, []int{5, 2}, nil},
		{"the number in each window", outputs.Number, &outputs.NumberPrediction{Value: 1.5}, 0, []int{3, 1},
			answers{{"1.5", -1, []int{0}, []int{0}}, {"1.5", -1, []int{1}, []int{1}}}},
		{"the similarity of the pair", outputs.Similarity, &outputs.NumberPrediction{Value: 0.5}, 0, []int{2, 1},
			answers{{"0.5", -1, []int{0}, []int{0, 1}}}},
		{"the distance", outputs.Anomaly, &outputs.AnomalyPrediction{Distance: 3}, 1, []int{3, 1},
			answers{{"3", -1, []int{2}, []int{2}}}},
		{"a node of features", outputs.Anomaly, &outputs.AnomalyPrediction{}, 1, []int{3, 9}, nil},
		{"start and end", outputs.Span, extracted, 0, []int{11, 2}, answers{{"b c", -1, []int{10, 13}, []int{1}}}},
		{"no answer", outputs.Span, &outputs.SpanPrediction{}, 1, []int{11, 2},
			answers{{"", -1, []int{16, 17}, []int{2}}}},
		{"the likeliest tokens", outputs.HiddenTokens, guess(7, 3), 0, []int{3, 9},
			answers{{"H", -1, []int{7}, []int{0}}, {"D", -1, []int{12}, []int{1}}}},
		{"the likeliest token of the second example", outputs.HiddenTokens, guess(4), 1, []int{3, 9},
			answers{{"E", -1, []int{22}, []int{2}}}},
		{"a node of another shape", outputs.Label, &outputs.LabelPrediction{}, 0, []int{3}, nil},
	} {
		if got := c.kind.Answers(c.p, in, rows, c.example, c.shape); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLocate(t *testing.T) {
	window := func(offsets ...corpus.Span) corpus.Encoding {
		w := corpus.Encoding{Offsets: offsets, Words: make([]int32, len(offsets))}
		for range offsets {
			w.IDs, w.Segments = append(w.IDs, 0), append(w.Segments, 1)
		}
		return w
	}
	a, b, c := corpus.Span{Start: 0, End: 1}, corpus.Span{Start: 2, End: 3}, corpus.Span{Start: 4, End: 5}
	e := &corpus.Example{Pair: "a b c", Windows: []corpus.Encoding{window(a), window(a, b), window(b, c)}}
	present := &outputs.SpanTarget{Answers: []corpus.TextSpan{{Text: "b", Span: b}}}
	outputs.Span.Locate(present, e)
	want := []corpus.Span{{}, {Start: 1, End: 2}, {Start: 0, End: 1}}
	if !slices.Equal(present.Tokens, want) || outputs.Span.Truncated(present) {
		t.Errorf("tokens %v, want %v", present.Tokens, want)
	}
	absent := &outputs.SpanTarget{Answers: []corpus.TextSpan{}}
	outputs.Span.Locate(absent, e)
	if len(absent.Tokens) != 3 || outputs.Span.Truncated(absent) {
		t.Errorf("tokens %v without an answer, want an empty span per window", absent.Tokens)
	}
	e.Windows = e.Windows[:1]
	outputs.Span.Locate(present, e)
	if !outputs.Span.Truncated(present) {
		t.Errorf("an answer outside all windows has tokens %v and is not truncated", present.Tokens)
	}
	p := &outputs.SpanPrediction{Tokens: corpus.Span{Start: 0, End: 1}}
	outputs.Span.NamePrediction(p, e, nil)
	if want := (corpus.TextSpan{Text: "a", Span: a}); p.Answer != want {
		t.Errorf("extracted %+v, want %+v", p.Answer, want)
	}

	// only the first word has a token
	words := &corpus.Example{Words: []corpus.Span{a, b}, Windows: []corpus.Encoding{{Words: []int32{-1, 0, -1}}}}
	tags := &outputs.TagsTarget{Tags: []string{"x", "x"}, IDs: []int{1, 1}}
	outputs.Tags.Locate(tags, words)
	if !slices.Equal(tags.IDs, []int{1, corpus.Unlabelled}) {
		t.Errorf("tags %v", tags.IDs)
	}
}

func TestCount(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		kind   *outputs.Kind
		target corpus.Target
		want   outputs.Count
	}{
		{outputs.Label, &outputs.LabelTarget{ID: 2}, outputs.Count{Units: 1, Labels: []int{2}}},
		{outputs.Labels, &outputs.LabelsTarget{IDs: []int{0, 1}}, outputs.Count{Units: 1, Labels: []int{0, 1}}},
		{outputs.Tags, &outputs.TagsTarget{IDs: []int{0, -1, 1}}, outputs.Count{Units: 2, Labels: []int{0, -1, 1}}},
		{outputs.Number, &outputs.NumberTarget{Value: 7}, outputs.Count{Units: 1, Number: number(7)}},
		{outputs.Anomaly, &outputs.AnomalyTarget{Anomalous: true}, outputs.Count{Units: 1, Number: number(1)}},
		{outputs.Span, &outputs.SpanTarget{}, outputs.Count{Units: 1}},
		{outputs.HiddenTokens, nil, outputs.Count{}},
	} {
		if got := c.kind.Count(c.target); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.kind, got, c.want)
		}
	}
}
